"""Makes ptyd the runtime of SWE-ReX's own tests, behind its server and without it."""

import swerex.runtime.local
import swerex.server
from ptyd import Ptyd
from ptyd_swerex import PtydRuntime

# The first test waits 0.15 s for an answer, which is less than the start of a server takes.
Ptyd().close()
swerex.server.runtime = PtydRuntime()
swerex.runtime.local.LocalRuntime = PtydRuntime
