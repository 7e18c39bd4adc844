"""What becomes of the SVG that matplotlib writes."""
