"""The console at `/admin`: pages without script or build step."""
