"""Programs that make the records that ship, and what is measured now and then."""
