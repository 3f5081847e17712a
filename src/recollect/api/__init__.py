"""The Python library: `Recollect`, its async counterpart, and the views of a tenant and an agent."""
