"""Rendering of pages, Markdown posts and errata from content and templates."""
