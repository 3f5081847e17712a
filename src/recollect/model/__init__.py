"""The records: what an agent's memory is made of. Values, all of them, by one name: `recollect.model`."""

from recollect.model.background import *  # noqa: F403
from recollect.model.checkup import *  # noqa: F403
from recollect.model.consolidation import *  # noqa: F403
from recollect.model.erasure import *  # noqa: F403
from recollect.model.history import *  # noqa: F403
from recollect.model.recalling import *  # noqa: F403
from recollect.model.records import *  # noqa: F403
from recollect.model.runs import *  # noqa: F403
from recollect.model.transcripts import *  # noqa: F403
from recollect.model.transfer import *  # noqa: F403
from recollect.model.working_memory import *  # noqa: F403
