"""Rows of each table, one mixin per group of tables."""
