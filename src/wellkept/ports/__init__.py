"""Protocols the services depend on: stores, embedders, models and files.

Every store call names an `Owner` or a tenant and sees no other data: an id of another owner is answered exactly like a
missing one. `get_` raises NotFound, `find_` may return None. All methods raise StoreError when the database fails.
"""

from wellkept.ports.content import *  # noqa: F403
from wellkept.ports.history import *  # noqa: F403
from wellkept.ports.memories import *  # noqa: F403
from wellkept.ports.providers import *  # noqa: F403
from wellkept.ports.store import *  # noqa: F403
from wellkept.ports.upkeep import *  # noqa: F403
