"""What a page shows, as typed records: no words, no HTML."""
