//! Tells how a session ended if its holder did not record that.

use crate::host::holders::Traces;
use crate::sessions::timeline::Timeline;

/// Sets in the timeline how a session without a recorded exit ended: its holder was killed, or the end of the events is
/// missing. The traces must have been read before the events.
pub(in crate::sessions) fn explain_unrecorded_end(timeline: &mut Timeline, traces: &Traces) {
    let Traces { original, is_forced, has_left } = traces;
    let (is_forced, has_left) = (*is_forced, *has_left);
    let end = if let Some((pid, path)) = original {
        let original = path.as_ref().map_or_else(String::new, |path| format!(" in {:?}", path));
        format!("this folder is a copy: the session lives with its holder (process {pid}){original}; nothing was ended")
    } else {
        if has_left && !is_forced {
            let missing = "damaged: events end before the session's exit, and its holder's socket is gone; what happened \
                           at the end is not known";
            timeline.set_damage(missing.to_owned());
        }
        let begun = timeline
            .end()
            .ending
            .as_ref()
            .map_or_else(String::new, |(_, why)| format!(" while it ended the session ({why})"));
        let forced = "terminated by force on request; the session's holder process was killed";
        match &timeline.damage() {
            None if is_forced => forced.to_owned(),
            Some(damage) if is_forced => format!("{forced}; {damage}"),
            None => format!("the session's holder process was killed{begun}"),
            Some(damage) if has_left => format!("how it ended is not known; {damage}"),
            Some(damage) => format!("the session's holder process was killed{begun}; {damage}"),
        }
    };
    timeline.set_unrecorded_end(end);
}
