"""Work that takes long: one engine of tasks, and the two faces that the revisions give it.

`Engine` keeps tasks in a `Store` and moves them; `work` does what a task is about; `Core` (2025-11-25) and `Extension`
(``io.modelcontextprotocol/tasks``) are the methods that hosts use. Knows no framework and no gateway.
"""

from troth.tasks.core import Core, Wish, wish
from troth.tasks.engine import Engine
from troth.tasks.extension import Extension
from troth.tasks.model import Asked, Outcome, Page, Requester, Status, StoreError, Task, TaskLimits
from troth.tasks.sqlite import SqliteStore
from troth.tasks.store import MemoryStore, Store
from troth.tasks.work import Job, work

__all__ = [
    "Asked",
    "Core",
    "Engine",
    "Extension",
    "Job",
    "MemoryStore",
    "Outcome",
    "Page",
    "Requester",
    "SqliteStore",
    "Status",
    "Store",
    "StoreError",
    "Task",
    "TaskLimits",
    "Wish",
    "wish",
    "work",
]
