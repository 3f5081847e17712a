"""Records shared by all layers. Import them from `recollect.model`."""

from recollect.model.activity import *  # noqa: F403
from recollect.model.prompts import *  # noqa: F403
from recollect.model.records import *  # noqa: F403
from recollect.model.upkeep import *  # noqa: F403
