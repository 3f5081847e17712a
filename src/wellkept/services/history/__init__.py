"""Audit events, workflows and tracing spans."""
