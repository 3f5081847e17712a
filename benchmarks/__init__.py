"""Speed, printed as ratios to a floor measured in the same run: machines differ, and one differs by the hour."""

from wellkept.settings import use_one_thread_each

use_one_thread_each()  # as `wellkept serve` does, before NumPy is loaded: its threads would measure each other
