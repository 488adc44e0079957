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


CommandView: TypeAlias = Literal['text', 'raw']


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


class Driver(TypedDict):
    client: NotRequired[str]
    name: str
    since: str
    until: str


EndedBy: TypeAlias = Literal['accepted', 'ended', 'matched', 'input_wanted', 'stopped', 'quiet', 'timed_out', 'exited']


Enforcer: TypeAlias = Literal['cgroup', 'rlimit', 'holder', 'server']


ErrorCode: TypeAlias = Literal['malformed_body', 'invalid_field', 'body_too_large', 'body_late', 'malformed_head', 'unauthorized', 'host_refused', 'origin_refused', 'forbidden', 'policy_denied', 'approval_needed', 'route_not_found', 'method_not_allowed', 'upgrade_required', 'session_not_found', 'other_node', 'command_not_found', 'token_not_found', 'session_ended', 'session_alive', 'session_busy', 'session_not_ready', 'nothing_runs', 'input_stalled', 'session_driven', 'would_echo', 'already_decided', 'limit_reached', 'rate_limited', 'key_reused', 'name_taken', 'start_failed', 'session_unreachable', 'resources_exhausted', 'removal_continues', 'server_draining', 'server_restarting', 'node_unreachable', 'internal']


EventKind: TypeAlias = Literal['session.created', 'session.terminated', 'command.started', 'command.completed', 'attention', 'limit', 'approval.requested', 'approval.decided', 'keyboard.taken', 'keyboard.returned', 'gap']


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
    approvalTimeout: NotRequired[float]
    driverTimeout: NotRequired[float]
    endWithNewline: NotRequired[bool]
    input: NotRequired[str]
    inputBase64: NotRequired[str]
    keys: NotRequired[list[str]]
    maxChars: NotRequired[int]
    paste: NotRequired[bool]
    secret: NotRequired[bool]
    timeout: NotRequired[float]
    until: NotRequired[list[str]]
    waitFor: NotRequired[str]


class Journal(TypedDict):
    endOffset: int
    firstOffset: int


Limit: TypeAlias = Literal['cpuSeconds', 'memoryMb', 'processes', 'openFiles', 'outputMb', 'outputMbPerSecond', 'commandSeconds'] | Literal['inactivityTimeout'] | Literal['maxAge']


class LimitHit(TypedDict):
    at: str
    commandId: NotRequired[str]
    count: int
    limit: Limit


class Limits(TypedDict, closed=True):
    commandSeconds: NotRequired[float]
    cpuSeconds: NotRequired[float]
    memoryMb: NotRequired[int]
    openFiles: NotRequired[int]
    outputMb: NotRequired[float]
    outputMbPerSecond: NotRequired[float]
    processes: NotRequired[int]


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
    idempotencyKey: NotRequired[str]
    method: Method
    path: str


class OperationAnswer(TypedDict):
    body: NotRequired[Any]
    status: int


Order: TypeAlias = Literal['oldest', 'newest']


OutputKind: TypeAlias = Literal['command', 'background']


OutputStreamView: TypeAlias = Literal['text', 'raw', 'stream']


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


class RenameRequest(TypedDict, closed=True):
    name: str


class ResourceUsage(TypedDict):
    cpu: float
    memory: float
    processes: int


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
    command: NotRequired[str]
    keys: NotRequired[list[str]]
    signal: NotRequired[NumberOrName]


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
    target: NotRequired[NumberOrName]


class SocketEventControl(TypedDict):
    client: str
    currentCommand: NotRequired[str]
    dimensions: Dimensions
    driver: NotRequired[Driver]
    endOffset: int
    event: Literal['control']
    firstOffset: int
    foreground: Foreground
    mayWrite: bool
    offset: int
    session: str
    status: NotRequired[SessionStatus]
    windowBytes: NotRequired[int]


class SocketEventError(TypedDict):
    code: ErrorCode
    detail: str
    event: Literal['error']
    seq: NotRequired[int]


class SocketEventExit(TypedDict):
    event: Literal['exit']
    exit: NotRequired[Exit]


class SocketEventForeground(TypedDict):
    event: Literal['foreground']
    foreground: Foreground


class SocketEventKeyboardTaken(TypedDict):
    driver: Driver
    event: Literal['keyboard.taken']


class SocketEventLimit(TypedDict):
    commandId: NotRequired[str]
    event: Literal['limit']
    limit: Limit


class SocketEventMissed(TypedDict):
    event: Literal['missed']
    events: int


class SocketEventPong(TypedDict):
    event: Literal['pong']


class SocketEventReady(TypedDict):
    event: Literal['ready']


class SocketEventResize(TypedDict):
    dimensions: Dimensions
    event: Literal['resize']


class SocketInputInput(TypedDict, closed=True):
    data: NotRequired[str]
    dataBase64: NotRequired[str]
    seq: NotRequired[int]
    type: Literal['input']


class SocketInputPing(TypedDict, closed=True):
    type: Literal['ping']


class SocketInputResize(TypedDict, closed=True):
    cols: int
    rows: int
    type: Literal['resize']


class SocketMessageError(TypedDict):
    code: ErrorCode
    detail: str
    seq: NotRequired[int]
    type: Literal['error']


class SocketMessageGap(TypedDict):
    fromOffset: int
    nextOffset: int
    type: Literal['gap']


class SocketMessageOutput(TypedDict):
    data: str
    dataBase64: NotRequired[str]
    dimensions: NotRequired[Dimensions]
    fromOffset: NotRequired[int]
    nextOffset: int
    snapshot: NotRequired[bool]
    type: Literal['output']


class SocketMessagePong(TypedDict):
    type: Literal['pong']


class SocketMessageStatus(TypedDict):
    status: SessionStatus
    type: Literal['status']


class SocketMessageTyped(TypedDict):
    seq: int
    type: Literal['typed']


class SocketRequestPing(TypedDict, closed=True):
    event: Literal['ping']


class SocketRequestResize(TypedDict, closed=True):
    dimensions: Dimensions
    event: Literal['resize']


class Span(TypedDict):
    col: int
    row: int
    text: str


class StartupFailure(TypedDict):
    command: str
    reason: str


TakeOverEnd: TypeAlias = Literal['returned', 'forced', 'timed_out', 'disconnected']


TakeRequest = TypedDict(
    'TakeRequest',
    {
        'for': NotRequired[float],
        'force': NotRequired[bool],
        'hold': NotRequired[bool],
    },
    closed=True,
)


class TerminalSession(TypedDict):
    boundary: Boundary
    cargo: NotRequired[str]
    clientName: NotRequired[str]
    confinement: NotRequired[ConfinementTier]
    connection: Connection
    createdAt: str
    currentCommand: NotRequired[str]
    cwd: str
    cwdBase64: NotRequired[str]
    dimensions: Dimensions
    driver: NotRequired[Driver]
    env: dict[str, str]
    exit: NotRequired[Exit]
    foreground: Foreground
    id: str
    inactivityTimeout: NotRequired[float]
    journal: Journal
    lastActivity: str
    limits: NotRequired[Limits]
    limitsEnforcedBy: NotRequired[dict[str, Enforcer]]
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
    viewers: NotRequired[list[str]]


class TerminateQuery(TypedDict, closed=True):
    force: NotRequired[bool]
    graceSeconds: NotRequired[float]
    purge: NotRequired[bool]
    signal: NotRequired[str]


class Terminated(TypedDict):
    freedBytes: NotRequired[int]
    killed: int
    left: int
    session: TerminalSession
    status: SessionStatus
    wasOver: bool


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
    inputWanted: NotRequired[bool]
    maxChars: NotRequired[int]
    quietMs: NotRequired[int]
    timeout: NotRequired[float]
    until: NotRequired[list[str]]
    waitFor: NotRequired[str]


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
    actions: NotRequired[dict[str, SessionAction]]
    confinement: NotRequired[ConfinementTier]
    cwd: NotRequired[str]
    dimensions: NotRequired[Dimensions]
    env: NotRequired[dict[str, str]]
    fallbackCwd: NotRequired[str]
    inactivityTimeout: NotRequired[float]
    limits: NotRequired[Limits]
    login: NotRequired[bool]
    maxAge: NotRequired[float]
    name: NotRequired[str]
    onEnd: NotRequired[OnEnd]
    owner: NotRequired[str]
    profile: NotRequired[str]
    shell: NotRequired[str]


class Event(TypedDict):
    approvalId: NotRequired[str]
    at: str
    commandId: NotRequired[str]
    decision: NotRequired[Decision]
    driver: NotRequired[Driver]
    endedBy: NotRequired[TakeOverEnd]
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
    approvalTimeout: NotRequired[float]
    command: str
    driverTimeout: NotRequired[float]
    inside: NotRequired[bool]
    maxChars: NotRequired[int]
    onTimeout: NotRequired[OnTimeout]
    timeout: NotRequired[float]
    until: NotRequired[list[str]]
    waitFor: NotRequired[str]
    waitForCompletion: NotRequired[bool]


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
    clientName: NotRequired[str]
    confinement: NotRequired[ConfinementTier]
    connection: Connection
    createdAt: str
    currentCommand: NotRequired[str]
    cwd: str
    cwdBase64: NotRequired[str]
    dimensions: Dimensions
    driver: NotRequired[Driver]
    env: dict[str, str]
    exit: NotRequired[Exit]
    foreground: Foreground
    id: str
    inactivityTimeout: NotRequired[float]
    journal: Journal
    lastActivity: str
    limits: NotRequired[Limits]
    limitsEnforcedBy: NotRequired[dict[str, Enforcer]]
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
    viewers: NotRequired[list[str]]


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


class SessionList(TypedDict):
    degraded: NotRequired[bool]
    terminals: list[TerminalSession]
    total: int


class SocketEventKeyboardReturned(TypedDict):
    driver: Driver
    endedBy: TakeOverEnd
    event: Literal['keyboard.returned']


SocketInput: TypeAlias = SocketInputInput | SocketInputResize | SocketInputPing


SocketMessage: TypeAlias = SocketMessageOutput | SocketMessageStatus | SocketMessageGap | SocketMessageTyped | SocketMessagePong | SocketMessageError


SocketRequest: TypeAlias = SocketRequestResize | SocketRequestPing


class TicketRequest(TypedDict, closed=True):
    page: NotRequired[TicketPage]
    scope: NotRequired[TicketScope]
    session: NotRequired[str]


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
    confinement: NotRequired[ConfinementTier]
    expiresIn: NotRequired[float]
    name: str
    policy: NotRequired[str]
    profiles: NotRequired[list[Profile]]
    scope: NotRequired[TokenScope]
    secrets: NotRequired[list[Secret]]


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


class SocketEventCommandCompleted(TypedDict):
    command: CommandExecution
    event: Literal['command.completed']


class SocketEventCommandStarted(TypedDict):
    command: CommandExecution
    event: Literal['command.started']


class WaitAnswer(TypedDict):
    acceptedBytes: NotRequired[int]
    command: NotRequired[CommandExecution]
    crlfLines: int
    endedBy: EndedBy
    escaped: int
    foreground: Foreground
    fromOffset: int
    ignoredBy: NotRequired[str]
    lineExitCode: NotRequired[int]
    matched: NotRequired[str]
    nextOffset: int
    omitted: NotRequired[Omitted]
    output: str
    screen: NotRequired[Screen]
    status: SessionStatus
    truncated: bool
    unfinished: int
    waitedMs: int


SocketEvent: TypeAlias = SocketEventControl | SocketEventCommandStarted | SocketEventCommandCompleted | SocketEventReady | SocketEventForeground | SocketEventResize | SocketEventLimit | SocketEventKeyboardTaken | SocketEventKeyboardReturned | SocketEventExit | SocketEventMissed | SocketEventPong | SocketEventError
