"""Adapters for agent frameworks, one module each.

A module imports its framework when it is imported itself; recollect depends on none of them.
"""
