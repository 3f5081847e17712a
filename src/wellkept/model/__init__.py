"""Records shared by all layers. Import them from `wellkept.model`."""

from wellkept.model.activity import *  # noqa: F403
from wellkept.model.records import *  # noqa: F403
from wellkept.model.upkeep import *  # noqa: F403
