"""Moving a tenant from the command line."""
