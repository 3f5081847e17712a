"""The records: what an agent's memory is made of. Values, all of them, by one name: `recollect.model`."""

from recollect.model.activity import *  # noqa: F403  # noqa: F403  # noqa: F403
from recollect.model.prompts import *  # noqa: F403  # noqa: F403
from recollect.model.records import *  # noqa: F403
from recollect.model.upkeep import *  # noqa: F403  # noqa: F403  # noqa: F403  # noqa: F403  # noqa: F403
