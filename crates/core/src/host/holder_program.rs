//! The holder's program, which is part of this one.

/// In the block format of LZ4, after its size.
static COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ptyd-holder.lz4"));

/// Its bytes. Unpacking them takes about a millisecond.
pub(crate) fn holder() -> Vec<u8> {
    lz4_flex::block::decompress_size_prepended(COMPRESSED).expect("invariant: the build has compressed it")
}

/// Whether the holder is statically linked: a dynamic one takes almost twice the memory in every session.
#[must_use]
pub fn holder_is_static() -> bool {
    !names_an_interpreter(&holder())
}

/// Whether the kernel starts a dynamic linker for this program (elf(5), `PT_INTERP`). The header of a 64-bit program
/// has the offset of the program header table at 32, the size of an entry at 54, and their number at 56.
fn names_an_interpreter(program: &[u8]) -> bool {
    const PT_INTERP: u32 = 3;
    let short = |at: usize| usize::from(u16::from_le_bytes([program[at], program[at + 1]]));
    let word = |at: usize| program[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
    let table = program[32..40].try_into().map_or(0, u64::from_le_bytes) as usize;
    (0..short(56)).any(|number| word(table + number * short(54)) == PT_INTERP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: cli-8
    fn the_holder_in_this_program_is_static() {
        let own = std::fs::read("/proc/self/exe").expect("we run");
        assert_eq!(names_an_interpreter(&own), cfg!(not(target_feature = "crt-static")), "this program itself");
        assert!(holder_is_static(), "a static C library is missing here (libc6-dev has it, or the musl target)");
    }
}
