//! Every field is read back, damage is noticed, and what a later version has added is skipped.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;

/// The checksum and the closing bytes.
const SUM_BYTES: usize = 4 + 8;

fn full() -> Spec {
    Spec {
        session: "s0-abc".into(),
        program: b"/bin/dash".to_vec(),
        argv: vec![b"dash".to_vec(), b"-i".to_vec(), Vec::new()],
        env: vec![b"A=\xff".to_vec()],
        cwd: b"/tmp/a\nb".to_vec(),
        umask: 0o27,
        cols: 80,
        rows: 24,
        journal_bytes_max: 1 << 40,
        may_splice: true,
        keeps_descendants: true,
        meta: b"{}".to_vec(),
        open_files: 1024,
        groups: vec![b"/sys/fs/cgroup/pids/ptyd/s0-abc/cgroup.procs".to_vec()],
        hard_limits: HardLimits { open_files: 64, address_space: 1 << 30, tasks: 41 },
        identity: vec![1_000, 1_000, 1_000, 27],
        output_rate: 1 << 33,
        handover: Handover {
            method: HandoverMethod::Line(b"run {}".to_vec()),
            attestation_fd: 9,
            script: b"/s/sh.sh".to_vec(),
            short_line: Vec::new(),
            hooks_in_editor_modes: true,
            script_is_last: true,
        },
        confinement: None,
    }
}

#[test]
fn a_spec_is_read_back_as_it_was_written() {
    let short_line = b"take".to_vec();
    let with =
        |method| Spec { handover: Handover { method, short_line: short_line.clone(), ..full().handover }, ..full() };
    let methods = [HandoverMethod::Typed, HandoverMethod::Keys, HandoverMethod::InBand];
    let rules = Rules {
        readable: vec!["/usr".into(), "/etc".into()],
        writable: vec!["/srv/a".into()],
        kept: vec!["/srv/a/.envrc".into()],
        devices: Vec::new(),
        hidden: vec!["/home/a\nb".into()],
        network: true,
        namespaces: Namespaces::Container,
    };
    let confined = [rules, Rules::default()].map(|rules| Spec { confinement: Some(rules), ..full() });
    for spec in methods.map(with).into_iter().chain([full(), Spec::default()]).chain(confined) {
        assert_eq!(Spec::decode(&spec.encode()), Some(spec));
    }
}

#[test]
fn a_damaged_or_cut_spec_is_refused() {
    let bytes = full().encode();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Spec::decode(&flipped), None, "bit {bit}");
    }
    for end in 0..bytes.len() {
        assert_eq!(Spec::decode(&bytes[..end]), None, "cut at {end}");
    }
}

#[test]
fn fields_of_a_later_version_are_skipped_and_its_hand_over_is_refused() {
    let sealed = |fields: &[u8]| [fields, &crc32fast::hash(fields).to_le_bytes(), &TAGGED].concat();
    let fields = full().encode();
    let fields = &fields[..fields.len() - SUM_BYTES];
    let later = [&[200, 3, 0, 0, 0], b"new".as_slice(), fields].concat();
    assert_eq!(Spec::decode(&sealed(&later)), Some(full()));
    let unknown = [fields, &[tag::HANDOVER_METHOD, 8, 0, 0, 0], &9u64.to_le_bytes()].concat();
    assert_eq!(Spec::decode(&sealed(&unknown)), None);
}

#[test]
fn a_spec_that_could_not_be_read_back_is_not_stored() {
    let dir = tempfile::tempdir().unwrap();
    let mut spec = Spec { meta: vec![b' '; SPEC_BYTES_MAX], ..full() };
    let refused = spec.store(dir.path()).unwrap_err();
    assert!(refused.to_string().contains("at most 8388608 are kept"), "{refused}");
    assert!(!dir.path().join(SPEC_FILE).exists());
    spec.meta.truncate(SPEC_BYTES_MAX / 2);
    spec.store(dir.path()).unwrap();
    assert_eq!(Spec::load(dir.path()).unwrap(), spec);
}
