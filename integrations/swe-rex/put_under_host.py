"""Makes ptyd the runtime of SWE-ReX's own tests, behind its server and without it."""

import swerex.runtime.local
import swerex.server
from ptyd_swerex import PtydRuntime

swerex.server.runtime = PtydRuntime()
swerex.runtime.local.LocalRuntime = PtydRuntime
