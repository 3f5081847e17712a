"""The scope of each route, by method and path, as the routes declare it."""

from __future__ import annotations

from wellkept.server import app

SCOPES = {route.name: route.scope for route in app.REST}
CONSOLE = {route.name: route.scope for route in app.CONSOLE}
