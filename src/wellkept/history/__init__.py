"""History: the audit log and workflows."""
