"""Transfer: export and import of a tenant."""
