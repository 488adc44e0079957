//! Memory that other processes read through a descriptor, and that no process but this one can change.

use std::ffi::{CStr, c_void};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

use rustix::fs::{MemfdFlags, Mode, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// A memfd of a fixed size that is written through one mapping, made before the memfd was sealed against every other way to
/// write (memfd_create(2), `F_SEAL_FUTURE_WRITE`). It takes memory only where it was written to, until it is dropped.
#[derive(Debug)]
pub struct SealedMemory {
    mapping: NonNull<u8>,
    size: usize,
    /// How many bytes may differ from zero.
    used: usize,
}

impl SealedMemory {
    /// All zeros; with it comes its descriptor, open for reading only. Every user may open that again, to read.
    pub fn new(name: &CStr, size: usize) -> io::Result<(Self, File)> {
        let memory = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&memory, size as u64)?;
        rustix::fs::fchmod(&memory, Mode::from_raw_mode(0o444))?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the place, so nothing that is in use is replaced.
        let place = unsafe { rustix::mm::mmap(ptr::null_mut(), size, access, MapFlags::SHARED, &memory, 0) }?;
        let mapping = NonNull::new(place.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let sealed = Self { mapping, size, used: 0 };
        let seals = SealFlags::FUTURE_WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&memory, seals)?;
        // The writable descriptor is closed; it would be of no use to anybody.
        let readable = File::open(format!("/proc/self/fd/{}", memory.as_raw_fd()))?;
        Ok((sealed, readable))
    }

    /// Writes these parts, one behind the other, and zeros behind them; an error where there is no room for them and a zero.
    pub fn replace(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let total = parts.iter().map(|part| part.len()).sum::<usize>();
        if total >= self.size {
            return Err(io::Error::from_raw_os_error(libc::E2BIG));
        }
        let mut at = 0;
        for part in parts {
            // SAFETY: `at + part.len() <= total < size`, so the destination is within the mapping, which lives as long as `self` and
            // is reached through no reference; a `part` is memory of this process that it does not overlap. No process
            // can shrink the file, so no page of it is missing.
            unsafe { ptr::copy_nonoverlapping(part.as_ptr(), self.mapping.as_ptr().add(at), part.len()) };
            at += part.len();
        }
        // SAFETY: as above, `total <= used.max(total) < size`.
        unsafe { ptr::write_bytes(self.mapping.as_ptr().add(total), 0, self.used.saturating_sub(total)) };
        self.used = total;
        Ok(())
    }
}

impl Drop for SealedMemory {
    fn drop(&mut self) {
        // SAFETY: it is the mapping that `new` made, and nothing refers to it any more.
        let _ = unsafe { rustix::mm::munmap(self.mapping.as_ptr().cast::<c_void>(), self.size) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::FileExt;

    const SIZE: usize = 64 << 10;

    fn memory() -> (SealedMemory, File) {
        SealedMemory::new(c"sealed-test", SIZE).expect("a memfd with seals")
    }

    #[test]
    fn written_text_is_read_with_zeros_behind_it() {
        let (mut memory, file) = memory();
        for text in ["a long one", "short", "", "a longer one again"] {
            memory.replace(&[b"<", text.as_bytes(), b">"]).expect("room");
            let mut read = Vec::new();
            let mut opened = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("opened again");
            opened.read_to_end(&mut read).expect("read");
            assert_eq!(read.len(), SIZE);
            let written = format!("<{text}>");
            assert!(read.starts_with(written.as_bytes()), "{text:?}");
            assert!(read.iter().skip(written.len()).all(|byte| *byte == 0), "{text:?}");
        }
    }

    #[test]
    fn a_text_without_room_for_a_zero_behind_it_changes_nothing() {
        let (mut memory, file) = memory();
        memory.replace(&[b"before"]).expect("room");
        let error = memory.replace(&[b"x", &vec![b'y'; SIZE - 1]]).expect_err("no room");
        assert_eq!(error.raw_os_error(), Some(libc::E2BIG));
        let mut read = [0; 7];
        file.read_exact_at(&mut read, 0).expect("read");
        assert_eq!(&read, b"before\0");
        memory.replace(&[&vec![b'y'; SIZE - 1]]).expect("room");
    }

    #[test]
    fn no_descriptor_of_it_can_change_it() {
        let (mut memory, file) = memory();
        memory.replace(&[b"asked"]).expect("room");
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        assert_eq!(rustix::io::write(&file, b"x"), Err(Errno::BADF));
        assert_eq!(rustix::fs::fcntl_add_seals(&file, SealFlags::empty()), Err(Errno::PERM));
        // Its owner may change its mode; that does not help.
        rustix::fs::fchmod(&file, Mode::from_raw_mode(0o666)).expect("its owner");
        let opened: OwnedFd = File::options().read(true).write(true).open(&path).expect("opened for writing").into();
        assert_eq!(rustix::io::write(&opened, b"x"), Err(Errno::PERM));
        assert_eq!(rustix::io::pwrite(&opened, b"x", 0), Err(Errno::PERM));
        for size in [0, 1, SIZE as u64 + 1] {
            assert_eq!(rustix::fs::ftruncate(&opened, size), Err(Errno::PERM));
        }
        assert!(File::options().write(true).truncate(true).open(&path).is_err());
        let hole = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        assert_eq!(rustix::fs::fallocate(&opened, hole, 0, 4096), Err(Errno::PERM));
        // SAFETY: the kernel would choose the place of a mapping that is never used.
        let mapped = unsafe {
            rustix::mm::mmap(ptr::null_mut(), SIZE, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &opened, 0)
        };
        assert_eq!(mapped, Err(Errno::PERM));
        // SAFETY: as above; one for reading is a mapping that cannot become writable.
        let mapped = unsafe { rustix::mm::mmap(ptr::null_mut(), SIZE, ProtFlags::READ, MapFlags::SHARED, &opened, 0) };
        let place = mapped.expect("mapped for reading");
        // SAFETY: it only changes the protection of the mapping above.
        let changed = unsafe {
            rustix::mm::mprotect(place, SIZE, rustix::mm::MprotectFlags::READ | rustix::mm::MprotectFlags::WRITE)
        };
        assert_eq!(changed, Err(Errno::ACCESS));
        // SAFETY: the mapping above, which nothing refers to.
        unsafe { rustix::mm::munmap(place, SIZE) }.expect("unmapped");
        let mut read = [0; 6];
        file.read_exact_at(&mut read, 0).expect("read");
        assert_eq!(&read, b"asked\0");
    }
}
