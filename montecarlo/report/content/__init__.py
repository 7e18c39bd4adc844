"""The content of pages: findings, tables, curves and records, without markup."""
