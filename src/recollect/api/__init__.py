"""The library: `Recollect`, its async twin, and the views of a tenant and an agent."""
