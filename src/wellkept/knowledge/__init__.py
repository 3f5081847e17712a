"""Knowledge: a tenant's documents, their passages, and skills."""
