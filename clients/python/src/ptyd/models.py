"""Made from schema/openapi.json by datamodel-code-generator: make_models.sh."""

# ruff: noqa

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from typing_extensions import NotRequired, TypedDict

ApprovalState: TypeAlias = Literal['pending', 'allowed', 'denied']


class AuditList(TypedDict):
    hasMore: bool
    lines: list[dict[str, Any]]


Boundary: TypeAlias = Literal['attested', 'nonce', 'heuristic']


CommandStatus: TypeAlias = Literal['running', 'completed', 'failed', 'terminated']


ConfinementTier: TypeAlias = Literal['process', 'sandbox', 'container']


class Connection(TypedDict):
    attach: str
    mcp: str
    socket: str
    url: str


class Cursor(TypedDict):
    col: int
    row: int
    visible: bool


Decision: TypeAlias = Literal['allow', 'always', 'deny']


class DecisionRequest(TypedDict, closed=True):
    decision: Decision


class Dimensions(TypedDict, closed=True):
    cols: int
    rows: int


class Drain(TypedDict):
    draining: bool
    node: int
    sessions: int
    since: NotRequired[str]


EndedBy: TypeAlias = Literal['accepted', 'ended', 'matched', 'input_wanted', 'stopped', 'quiet', 'timed_out', 'exited']


ErrorCode: TypeAlias = Literal['malformed_body', 'invalid_field', 'body_too_large', 'body_late', 'malformed_head', 'unauthorized', 'host_refused', 'origin_refused', 'forbidden', 'policy_denied', 'approval_needed', 'route_not_found', 'method_not_allowed', 'upgrade_required', 'session_not_found', 'other_node', 'command_not_found', 'token_not_found', 'session_ended', 'session_alive', 'session_busy', 'session_not_ready', 'nothing_runs', 'input_stalled', 'would_echo', 'already_decided', 'limit_reached', 'rate_limited', 'key_reused', 'start_failed', 'session_unreachable', 'resources_exhausted', 'removal_continues', 'server_draining', 'server_restarting', 'node_unreachable', 'internal']


EventKind: TypeAlias = Literal['session.created', 'session.terminated', 'command.started', 'command.completed', 'attention', 'limit', 'approval.requested', 'approval.decided', 'gap']


class Exit(TypedDict):
    at: str
    exitCode: NotRequired[int]
    reason: str
    signal: NotRequired[str]


Foreground: TypeAlias = Literal['idle', 'running', 'input_wanted', 'password_wanted', 'fullscreen', 'stopped']


Gap = TypedDict(
    'Gap',
    {
        'from': int,
        'to': int,
    },
)


class InputRequest(TypedDict, closed=True):
    approvalTimeout: NotRequired[float | None]
    endWithNewline: NotRequired[bool | None]
    input: NotRequired[str | None]
    inputBase64: NotRequired[str | None]
    keys: NotRequired[list[str] | None]
    maxChars: NotRequired[int | None]
    paste: NotRequired[bool | None]
    secret: NotRequired[bool | None]
    timeout: NotRequired[float | None]
    until: NotRequired[list[str] | None]
    waitFor: NotRequired[str | None]


class Journal(TypedDict):
    endOffset: int
    firstOffset: int


Keeper: TypeAlias = Literal['cgroup', 'rlimit', 'holder', 'server']


Limit: TypeAlias = Literal['cpuSeconds', 'memoryMb', 'processes', 'openFiles', 'outputMb', 'outputMbPerSecond', 'commandSeconds'] | Literal['inactivityTimeout'] | Literal['maxAge']


class LimitHit(TypedDict):
    at: str
    commandId: NotRequired[str]
    count: int
    limit: Limit


class Limits(TypedDict, closed=True):
    commandSeconds: NotRequired[float | None]
    cpuSeconds: NotRequired[float | None]
    memoryMb: NotRequired[int | None]
    openFiles: NotRequired[int | None]
    outputMb: NotRequired[float | None]
    outputMbPerSecond: NotRequired[float | None]
    processes: NotRequired[int | None]


class Match(TypedDict):
    commandId: NotRequired[str]
    line: int
    offset: int
    text: str


Method: TypeAlias = Literal['GET', 'POST', 'DELETE']


class NamedSecret(TypedDict):
    name: str
    profiles: list[str]
    setAt: str


NumberOrName: TypeAlias = int | str


class Omitted(TypedDict):
    bytes: int
    firstLine: int
    freed: int
    fromOffset: int
    lastLine: int
    toOffset: int


OnEnd: TypeAlias = Literal['kill', 'keep']


OnTimeout: TypeAlias = Literal['continue', 'interrupt', 'kill']


class Operation(TypedDict, closed=True):
    body: NotRequired[Any]
    idempotencyKey: NotRequired[str | None]
    method: Method
    path: str


class OperationAnswer(TypedDict):
    body: NotRequired[Any]
    status: int


Order: TypeAlias = Literal['oldest', 'newest']


OutputFormat: TypeAlias = Literal['text', 'raw']


OutputKind: TypeAlias = Literal['command', 'background']


OutputView: TypeAlias = Literal['text', 'raw', 'stream', 'screen']


class Problem(TypedDict):
    code: ErrorCode
    detail: str
    field: NotRequired[str]
    requestId: str
    status: int
    title: str
    type: str


ProcessState: TypeAlias = Literal['running', 'sleeping', 'blocked', 'stopped', 'ended']


class Receiver(TypedDict):
    name: str
    pid: int
    state: ProcessState


class ResourceUsage(TypedDict):
    cpu: float
    memory: float
    processes: int


ScreenFormat: TypeAlias = Literal['json', 'text', 'ansi']


class SearchAnswer(TypedDict):
    endOffset: int
    gap: NotRequired[Gap]
    lines: int
    matches: list[Match]
    more: bool
    nextOffset: int


class SecretList(TypedDict):
    secrets: list[NamedSecret]


class SecretRequest(TypedDict, closed=True):
    value: str


class SentSignal(TypedDict):
    at: str
    error: NotRequired[str]
    receivers: list[Receiver]
    signal: str
    target: NumberOrName


class SessionAction(TypedDict, closed=True):
    command: NotRequired[str | None]
    keys: NotRequired[list[str] | None]
    signal: NotRequired[NumberOrName | None]


class SessionEnvironment(TypedDict):
    login: bool
    profile: NotRequired[str]
    shell: str
    toolchains: dict[str, str]
    umask: str
    user: NotRequired[str]
    variables: dict[str, str]


class SessionPolicy(TypedDict):
    advisory: bool
    name: str
    unprovable: NotRequired[str]


SessionStatus: TypeAlias = Literal['creating', 'running', 'terminated']


class SignalList(TypedDict):
    signals: list[SentSignal]


class SignalRequest(TypedDict, closed=True):
    signal: NumberOrName
    target: NotRequired[NumberOrName | None]


class Span(TypedDict):
    col: int
    row: int
    text: str


class StartupFailure(TypedDict):
    command: str
    reason: str


class TerminateQuery(TypedDict, closed=True):
    force: NotRequired[bool | None]
    graceSeconds: NotRequired[float | None]
    purge: NotRequired[bool | None]
    signal: NotRequired[str | None]


class Ticket(TypedDict):
    expiresIn: int
    ticket: str
    url: NotRequired[str]


TicketPage: TypeAlias = Literal['docs', 'sessions']


TicketScope: TypeAlias = Literal['read', 'write']


Profile: TypeAlias = str


Secret: TypeAlias = str


TokenScope: TypeAlias = Literal['read', 'write', 'admin']


class WaitRequest(TypedDict, closed=True):
    inputWanted: NotRequired[bool | None]
    maxChars: NotRequired[int | None]
    quietMs: NotRequired[int | None]
    timeout: NotRequired[float | None]
    until: NotRequired[list[str] | None]
    waitFor: NotRequired[str | None]


class Approval(TypedDict):
    askedAt: str
    command: NotRequired[str]
    cwd: NotRequired[str]
    decidedBy: NotRequired[str]
    expiresIn: int
    id: str
    input: NotRequired[str]
    inputLength: NotRequired[int]
    inside: NotRequired[bool]
    keys: NotRequired[list[str]]
    owner: str
    policy: str
    principal: str
    rule: str
    sessionId: str
    sessionName: NotRequired[str]
    state: ApprovalState
    why: str


class ApprovalList(TypedDict):
    approvals: list[Approval]


class BatchAnswer(TypedDict):
    responses: list[OperationAnswer]


class BatchRequest(TypedDict, closed=True):
    operations: list[Operation]


class ConfinementCapability(TypedDict):
    available: bool
    reason: NotRequired[str]
    tier: ConfinementTier


class CreateRequest(TypedDict, closed=True):
    actions: NotRequired[dict[str, Any] | None]
    confinement: NotRequired[ConfinementTier | None]
    cwd: NotRequired[str | None]
    dimensions: NotRequired[Dimensions | None]
    env: NotRequired[dict[str, Any] | None]
    fallbackCwd: NotRequired[str | None]
    inactivityTimeout: NotRequired[float | None]
    limits: NotRequired[Limits | None]
    login: NotRequired[bool | None]
    maxAge: NotRequired[float | None]
    name: NotRequired[str | None]
    onEnd: NotRequired[OnEnd | None]
    owner: NotRequired[str | None]
    profile: NotRequired[str | None]
    shell: NotRequired[str | None]


class Event(TypedDict):
    approvalId: NotRequired[str]
    at: str
    commandId: NotRequired[str]
    decision: NotRequired[Decision]
    event: EventKind
    exit: NotRequired[Exit]
    exitCode: NotRequired[int]
    foreground: NotRequired[Foreground]
    limit: NotRequired[Limit]
    name: NotRequired[str]
    owner: NotRequired[str]
    sessionId: NotRequired[str]
    status: NotRequired[CommandStatus]


class ExecuteRequest(TypedDict, closed=True):
    approvalTimeout: NotRequired[float | None]
    command: str
    inside: NotRequired[bool | None]
    maxChars: NotRequired[int | None]
    onTimeout: NotRequired[OnTimeout | None]
    timeout: NotRequired[float | None]
    until: NotRequired[list[str] | None]
    waitFor: NotRequired[str | None]
    waitForCompletion: NotRequired[bool | None]


class KeptLimit(TypedDict):
    keptBy: Keeper
    limit: Limit
    value: float


class Login(TypedDict):
    expiresIn: int
    key: str
    principal: str
    scope: TokenScope


class NewToken(TypedDict):
    confinement: NotRequired[ConfinementTier]
    createdAt: str
    expiresAt: NotRequired[str]
    name: str
    policy: NotRequired[str]
    profiles: NotRequired[list[str]]
    scope: TokenScope
    secrets: NotRequired[list[str]]
    sessionsOutOfBounds: int
    token: str


class Output(TypedDict):
    crlfLines: int
    dataBase64: NotRequired[str]
    endOffset: int
    escaped: int
    final: bool
    firstOffset: int
    fromOffset: int
    gap: NotRequired[Gap]
    nextOffset: int
    omitted: NotRequired[Omitted]
    text: NotRequired[str]
    unfinished: int
    view: OutputView


class Process(TypedDict):
    commandLine: str
    cpu: float
    cpuSeconds: float
    isForeground: bool
    memory: float
    name: str
    parentPid: NotRequired[int]
    pid: int
    processGroup: int
    sandboxPid: NotRequired[int]
    session: int
    startedAt: str
    state: ProcessState


class ProcessList(TypedDict):
    processes: list[Process]


class Resized(TypedDict):
    boundary: Boundary
    cargo: NotRequired[str]
    confinement: NotRequired[ConfinementTier]
    connection: Connection
    createdAt: str
    currentCommand: NotRequired[str]
    cwd: str
    cwdBase64: NotRequired[str]
    dimensions: Dimensions
    env: dict[str, str]
    exit: NotRequired[Exit]
    foreground: Foreground
    id: str
    inactivityTimeout: NotRequired[float]
    journal: Journal
    lastActivity: str
    limits: NotRequired[list[KeptLimit]]
    limitsHit: NotRequired[list[LimitHit]]
    logFile: str
    maxAge: NotRequired[float]
    name: NotRequired[str]
    node: NotRequired[str]
    owner: str
    pid: NotRequired[int]
    policy: NotRequired[SessionPolicy]
    profile: NotRequired[str]
    python: NotRequired[str]
    resourceUsage: ResourceUsage
    rustc: NotRequired[str]
    shell: str
    startupFailed: NotRequired[list[StartupFailure]]
    status: SessionStatus
    success: bool
    trouble: NotRequired[str]
    unreachable: NotRequired[bool]


class Screen(TypedDict):
    alternate: bool
    ansiBase64: str
    changedRows: NotRequired[list[int]]
    cols: int
    cursor: Cursor
    inverse: list[Span]
    offset: int
    rows: list[str]
    title: str


class TerminalSession(TypedDict):
    boundary: Boundary
    cargo: NotRequired[str]
    confinement: NotRequired[ConfinementTier]
    connection: Connection
    createdAt: str
    currentCommand: NotRequired[str]
    cwd: str
    cwdBase64: NotRequired[str]
    dimensions: Dimensions
    env: dict[str, str]
    exit: NotRequired[Exit]
    foreground: Foreground
    id: str
    inactivityTimeout: NotRequired[float]
    journal: Journal
    lastActivity: str
    limits: NotRequired[list[KeptLimit]]
    limitsHit: NotRequired[list[LimitHit]]
    logFile: str
    maxAge: NotRequired[float]
    name: NotRequired[str]
    node: NotRequired[str]
    owner: str
    pid: NotRequired[int]
    policy: NotRequired[SessionPolicy]
    profile: NotRequired[str]
    python: NotRequired[str]
    resourceUsage: ResourceUsage
    rustc: NotRequired[str]
    shell: str
    startupFailed: NotRequired[list[StartupFailure]]
    status: SessionStatus
    trouble: NotRequired[str]
    unreachable: NotRequired[bool]


class Terminated(TypedDict):
    freedBytes: NotRequired[int]
    killed: int
    left: int
    session: TerminalSession
    status: SessionStatus
    wasOver: bool


class TicketRequest(TypedDict, closed=True):
    page: NotRequired[TicketPage | None]
    scope: NotRequired[TicketScope | None]
    session: NotRequired[str | None]


class TokenInfo(TypedDict):
    confinement: NotRequired[ConfinementTier]
    createdAt: str
    expiresAt: NotRequired[str]
    firstMaker: NotRequired[str]
    name: str
    policy: NotRequired[str]
    profiles: NotRequired[list[str]]
    scope: TokenScope
    secrets: NotRequired[list[str]]


class TokenList(TypedDict):
    tokens: list[TokenInfo]


class TokenRequest(TypedDict, closed=True):
    confinement: NotRequired[ConfinementTier | None]
    expiresIn: NotRequired[float | None]
    name: str
    policy: NotRequired[str | None]
    profiles: NotRequired[list[Profile] | None]
    scope: NotRequired[TokenScope | None]
    secrets: NotRequired[list[Secret] | None]


class Capabilities(TypedDict):
    confinement: list[ConfinementCapability]


class CommandExecution(TypedDict):
    background: NotRequired[str]
    boundary: Boundary
    command: str
    completedAt: NotRequired[str]
    crlfLines: int
    cwd: NotRequired[str]
    cwdBase64: NotRequired[str]
    durationMs: NotRequired[int]
    endOffset: NotRequired[int]
    endedBy: NotRequired[EndedBy]
    error: NotRequired[str]
    escaped: int
    exitCode: NotRequired[int]
    foreground: NotRequired[Foreground]
    id: str
    limitsHit: NotRequired[list[Limit]]
    matched: NotRequired[str]
    nextOffset: NotRequired[int]
    omitted: NotRequired[Omitted]
    onTimeout: NotRequired[OnTimeout]
    output: NotRequired[str]
    outputBase64: NotRequired[str]
    outputSize: int
    pipestatus: NotRequired[list[int]]
    screen: NotRequired[Screen]
    sessionId: str
    signal: NotRequired[str]
    startOffset: int
    startedAt: str
    status: CommandStatus
    truncated: bool
    unfinished: int
    waitedMs: NotRequired[int]


class CommandList(TypedDict):
    commands: list[CommandExecution]
    total: int


class SessionList(TypedDict):
    degraded: NotRequired[bool]
    terminals: list[TerminalSession]
    total: int


class WaitAnswer(TypedDict):
    acceptedBytes: NotRequired[int]
    command: NotRequired[CommandExecution]
    crlfLines: int
    endedBy: EndedBy
    escaped: int
    foreground: Foreground
    fromOffset: int
    ignoredBy: NotRequired[str]
    matched: NotRequired[str]
    nextOffset: int
    omitted: NotRequired[Omitted]
    output: str
    screen: NotRequired[Screen]
    status: SessionStatus
    truncated: bool
    unfinished: int
    waitedMs: int
