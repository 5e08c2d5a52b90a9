//! The JSON of events.

use serde_json::json;

use super::*;
use crate::testing::{event, interrupt_raised};

#[test]
fn names_are_the_types_that_deserialization_accepts() {
    let read = |name: &str| {
        let event = json!({ "seq": 1, "at_ms": 0, "run": "r", "type": name });
        serde_json::from_value::<Event>(event).unwrap_err().to_string()
    };
    let known = EventKind::NAMES.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>();
    let expected = format!("unknown variant `other`, expected one of {}", known.join(", "));
    assert_eq!(read("other"), expected);
    for name in EventKind::NAMES {
        assert!(!read(name).contains("unknown variant"), "{name}");
    }
}

/// The fields of an event in the order in which hosts write them.
const FIELDS: [&str; 8] = [
    r#""seq":7"#,
    r#""at_ms":-1"#,
    r#""run":"r""#,
    r#""namespace":"child""#,
    r#""type":"custom""#,
    r#""task":"t","node":"n""#,
    r#""name":"x""#,
    r#""data":{"type":"y","seq":1,"z":[0.1,null],"a":2}"#,
];

fn read(fields: &[&str]) -> serde_json::Result<Event> {
    serde_json::from_str(&format!("{{{}}}", fields.join(",")))
}

#[test]
fn fields_of_an_event_may_have_any_order() {
    let event = read(&FIELDS).unwrap();
    let text = format!("{{{}}}", FIELDS.join(","));
    assert_eq!(serde_json::to_string(&event).unwrap(), text);
    for first in 1..FIELDS.len() {
        let mut fields = FIELDS;
        fields.rotate_left(first);
        assert_eq!(read(&fields).unwrap(), event, "{first}");
        fields.reverse();
        assert_eq!(read(&fields).unwrap(), event, "{first} reversed");
    }
    let further = [&FIELDS[..], &[r#""later":{"type":1}"#]].concat();
    assert_eq!(read(&further).unwrap(), event, "unknown fields are ignored");
    let value = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::from_value::<Event>(value).unwrap(), event);
}

#[test]
fn fields_of_an_event_occur_once() {
    for (place, name) in ["seq", "at_ms", "run", "namespace", "type"].iter().enumerate() {
        let twice = [&FIELDS[..], &FIELDS[place..=place]].concat();
        let refused = read(&twice).unwrap_err().to_string();
        assert!(refused.starts_with(&format!("duplicate field `{name}`")), "{refused}");
        let mut without = FIELDS.to_vec();
        without.remove(place);
        match read(&without) {
            Ok(event) => assert_eq!((*name, event.namespace), ("namespace", Namespace::root())),
            Err(refused) => {
                let refused = refused.to_string();
                assert!(refused.starts_with(&format!("missing field `{name}`")), "{refused}");
            }
        }
    }
}

#[test]
fn payload_after_the_type_is_decoded_without_a_buffer() {
    let mut fields = FIELDS;
    fields[6] = "\n\"name\":1\n";
    let refused = read(&fields).unwrap_err();
    // A payload that is buffered would fail at the end of the event, on a later line.
    assert_eq!(refused.line(), 2, "{refused}");
}

#[test]
fn json_has_the_name_of_the_event_as_its_type() {
    let task = TaskId::new("t").unwrap();
    let end = RunEnded {
        status: RunStatus::Failed,
        failure: None,
        drained: false,
        principal: None,
        store_us: 0,
    };
    let from = CheckpointId(3);
    for kind in [
        EventKind::RunEnded(end),
        EventKind::InterruptRaised(interrupt_raised(&task, "n", 0)),
        EventKind::Forked(Forked { from, call: None, principal: None }),
    ] {
        let name = kind.name();
        assert_eq!(serde_json::to_value(event(kind)).unwrap()["type"], name);
    }
}

#[test]
fn events_for_clients_omit_the_state_of_an_elicitation() {
    let digest = "0".repeat(64);
    let question = r#""type":"asked","interrupt":"i","task":"t","node":"n","call":0,"payload":{"message":"?"}"#;
    let elicited = format!(
        r#","elicited":{{"round":1,"digest":"{digest}","server":"s","tool":"book","asked":{{"questions":{{"q":{{"message":"?","schema":{{}}}}}},"state":"opaque"}}}}"#
    );
    let old = format!(r#"{{"seq":1,"at_ms":0,"run":"r",{question}}}"#);
    let new = format!(r#"{{"seq":1,"at_ms":0,"run":"r",{question}{elicited}}}"#);
    for text in [&old, &new] {
        let event: Event = serde_json::from_str(text).unwrap();
        // The seal covers this JSON, so it must not change.
        assert_eq!(serde_json::to_string(&event).unwrap(), *text);
        assert_eq!(serde_json::to_string(&event.shown()).unwrap(), old);
        assert_eq!(serde_json::to_string(&event.into_shown()).unwrap(), old);
    }
}

#[test]
fn events_without_a_principal_keep_their_json() {
    let digest = "0".repeat(64);
    let old = [
        format!(r#""type":"run_started","graph":"g","digest":"{digest}","reason":"input""#),
        r#""type":"run_ended","status":"cancelled""#.to_owned(),
        r#""type":"answered","interrupt":"q","task":"t","answer":true"#.to_owned(),
        r#""type":"checkpointed","checkpoint":1,"step":0,"source":"update","changed":["a"],"next":[]"#
            .to_owned(),
        r#""type":"forked","from":1"#.to_owned(),
        format!(r#""type":"migrated","from":"{digest}","to":"{digest}""#),
        r#""type":"settled","task":"t","call":0,"decision":{"kind":"retry"},"by":"policy""#
            .to_owned(),
    ];
    for kind in old {
        let text = format!(r#"{{"seq":1,"at_ms":0,"run":"r",{kind}}}"#);
        let event: Event = serde_json::from_str(&text).unwrap();
        // The seal covers this JSON, so it must not change.
        assert_eq!(serde_json::to_string(&event).unwrap(), text);
        let principal = r#","principal":{"key":"k1","tenant":"acme","user":"jane"}}"#;
        let named = text.strip_suffix('}').unwrap().to_owned() + principal;
        let mut event: Event = serde_json::from_str(&named).unwrap();
        assert_eq!(serde_json::to_string(&event).unwrap(), named);
        event.make_anonymous();
        let anonymous = text.replace(r#""by":"policy""#, r#""by":"""#);
        assert_eq!(serde_json::to_string(&event).unwrap(), anonymous);
    }
}
