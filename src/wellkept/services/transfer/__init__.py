"""Export and import of tenants, and import of other programs' memories."""
