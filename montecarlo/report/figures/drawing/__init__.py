"""What all figures are drawn with: panels, series, colours, shades."""
