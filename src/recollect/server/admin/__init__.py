"""The console at `/admin`: pages for people, made from the verbs of the library, without script or build step."""
