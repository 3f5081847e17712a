"""The Python library: `Wellkept`, its async counterpart, and the views of a tenant and an agent."""
