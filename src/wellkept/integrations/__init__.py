"""Adapters for agent frameworks, one module each.

A module imports its framework when it is imported itself; wellkept depends on none of them.
"""
