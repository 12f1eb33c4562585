"""Everything that `kafkaform` exports to programs (docs/library.md): functions, and the types that
they take, return and raise. In a folder of its own: it needs `repository`, which needs the modules
beside it."""

from __future__ import annotations

from ...apply.recovery import Recovered
from ...apply.report import Report, Rerun, Result, Work
from ...apply.stop import Stop
from ...core.change import Action, Change, Outcome, OutcomeStatus
from ...core.diagnostics import Diagnostic, Severity
from ...core.errors import (
    AppliedInPart,
    Blocked,
    ConfigurationError,
    ConnectError,
    DryRunRefused,
    Interrupted,
    KafkaformError,
    Locked,
    OtherSystem,
    OutcomeUnknown,
    PlanRefused,
    StorageError,
    UsageError,
    exit_code,
)
from ...core.finding import AccessRow, Finding, Harm, Level
from ...core.progress import Message, Progress
from ...plan.model import Mode, Options, Plan
from ..adoption.split import FolderImport, SplitImport, import_into_folders
from ..generate.files import GeneratedConfiguration
from ..import_all import import_all
from ..model import Applied, DryRun, Note, PlanChosen, RunEvent
from ..operations import apply_changes, destroy, import_object
from ..plan_documents import load_plan, render_plan, save_plan
from ..planning import plan_changes
from ..repository.applying import FolderResult, RepositoryApplied, apply_repository
from ..repository.documents import FoldersApproval, make_approval
from ..repository.folders import OpenFolder, OpenRepository, open_repository
from ..repository.planning import FolderOutcome, RepositoryPlan, plan_repository
from ..workspace import Workspace, open_workspace

__all__ = [
    "AccessRow",
    "Action",
    "Rerun",
    "Applied",
    "AppliedInPart",
    "Blocked",
    "Change",
    "ConfigurationError",
    "ConnectError",
    "Diagnostic",
    "DryRun",
    "DryRunRefused",
    "Finding",
    "FolderImport",
    "FolderOutcome",
    "FolderResult",
    "FoldersApproval",
    "GeneratedConfiguration",
    "Harm",
    "Interrupted",
    "KafkaformError",
    "Level",
    "Locked",
    "Message",
    "Mode",
    "Note",
    "OpenFolder",
    "OpenRepository",
    "Options",
    "OtherSystem",
    "Outcome",
    "OutcomeStatus",
    "OutcomeUnknown",
    "Plan",
    "PlanChosen",
    "PlanRefused",
    "Progress",
    "Recovered",
    "Report",
    "RepositoryApplied",
    "RepositoryPlan",
    "Result",
    "RunEvent",
    "Severity",
    "SplitImport",
    "Stop",
    "StorageError",
    "UsageError",
    "Work",
    "Workspace",
    "apply_changes",
    "apply_repository",
    "destroy",
    "exit_code",
    "import_all",
    "import_into_folders",
    "import_object",
    "load_plan",
    "make_approval",
    "open_repository",
    "open_workspace",
    "plan_changes",
    "plan_repository",
    "render_plan",
    "save_plan",
]
