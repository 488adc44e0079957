//! The words of the wire. They are tested from outside, because each crate with tests inside is compiled twice.

use std::collections::HashSet;

use api::{ErrorCode, EventKind, Problem};

#[test]
fn a_kind_is_the_same_word_in_json_and_in_the_type() {
    let all = [
        EventKind::SessionCreated,
        EventKind::SessionTerminated,
        EventKind::ApprovalRequested,
        EventKind::ApprovalDecided,
        EventKind::CommandStarted,
        EventKind::CommandCompleted,
        EventKind::Attention,
        EventKind::Limit,
        EventKind::Gap,
    ];
    assert!(all.iter().all(|kind| serde_json::to_value(kind).is_ok_and(|word| word == kind.name())));
}

#[test]
fn a_code_is_the_same_word_in_json_and_in_the_type() {
    for code in ErrorCode::ALL {
        assert_eq!(serde_json::to_value(code).expect("plain"), code.as_str());
    }
    let distinct: HashSet<_> = ErrorCode::ALL.into_iter().collect();
    assert_eq!(distinct.len(), ErrorCode::ALL.len());
}

#[test]
// promise: rest-3
fn a_problem_names_its_code_its_request_and_its_field() {
    let problem =
        Problem::new(ErrorCode::InvalidField, "cols: 0 is too small".into(), Some("cols".into()), "r1".into());
    assert_eq!(
        serde_json::to_value(problem).expect("plain"),
        serde_json::json!({
            "type": "urn:ptyd:error:invalid_field", "title": "A field is not valid", "status": 422,
            "detail": "cols: 0 is too small", "code": "invalid_field", "requestId": "r1", "field": "cols"
        })
    );
}
