//! Every field is read back, damage is noticed, and the specs of earlier versions are read.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;

/// A spec that the last version with the positional layout wrote, checksum included.
const POSITIONAL: &[u8] = include_bytes!("positional.spec");
/// Its checksum and closing bytes.
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
        open_files_max: 64,
        address_space_max: 1 << 30,
        identity: vec![1_000, 1_000, 1_000, 27],
        output_rate: 1 << 33,
        handover: Handover {
            method: HandoverMethod::Line(b"run {}".to_vec()),
            attestation_fd: 9,
            script: b"/s/sh.sh".to_vec(),
            short_line: Vec::new(),
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
        writable: vec!["/work".into()],
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
    for bytes in [full().encode(), POSITIONAL.to_vec()] {
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Spec::decode(&flipped), None, "bit {bit}");
        }
        assert_eq!(Spec::decode(&bytes[..bytes.len() - 2]), None);
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
fn a_recorded_spec_with_positional_fields_is_read() {
    assert_eq!(Spec::decode(POSITIONAL), Some(full()));
}

#[test]
fn specs_that_ended_before_later_fields_are_read() {
    let bytes = &POSITIONAL[..POSITIONAL.len() - SUM_BYTES];
    let (mut spec, mut end) = (full(), bytes.len());
    assert_eq!(Spec::decode(bytes), Some(spec.clone()), "before the checksum");
    end -= 4 + spec.handover.script.len();
    spec.handover.script.clear();
    assert_eq!(Spec::decode(&bytes[..end]), Some(spec.clone()), "before scripts were inherited");
    end -= 1;
    assert_eq!(Spec::decode(&bytes[..end]), Some(spec.clone()), "before shells that report in their output");
    (end, spec.output_rate) = (end - 8, 0);
    assert_eq!(Spec::decode(&bytes[..end]), Some(spec.clone()), "before output rates");
    end -= 4 + spec.identity.len() * 4;
    spec.identity.clear();
    assert_eq!(Spec::decode(&bytes[..end]), Some(spec.clone()), "before other users");
    end -= 4 + 4 + b"run {}".len();
    spec.handover = Handover { method: HandoverMethod::Keys, ..Handover::default() };
    assert_eq!(Spec::decode(&bytes[..end]), Some(spec.clone()), "before shells other than bash");
    end -= 16 + 4 + 4 + spec.groups[0].len();
    (spec.groups, spec.open_files_max, spec.address_space_max) = (Vec::new(), 0, 0);
    assert_eq!(Spec::decode(&bytes[..end]), Some(spec), "before limits");
    assert_eq!(Spec::decode(&bytes[..end - 1]), None);
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
