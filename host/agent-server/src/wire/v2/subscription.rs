//! What a subscriber wants of a thread.

use std::collections::BTreeSet;

use crate::wire::request::Invalid;

/// One kind of events.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Channel {
    /// The state after each superstep.
    Values,
    /// What each task wrote.
    Updates,
    /// Messages, block by block.
    Messages,
    /// Calls of tools.
    Tools,
    /// How graphs begin and end.
    Lifecycle,
    /// Questions to people.
    Input,
    /// How tasks begin and end.
    Tasks,
    /// Checkpoints, without their values.
    Checkpoints,
    /// What nodes emit: all of it, or what has this name.
    Custom(Option<String>),
}

impl Channel {
    /// The channel of a name.
    ///
    /// # Errors
    ///
    /// [`Invalid::Value`] if there is none.
    pub fn of(name: &str) -> Result<Self, Invalid> {
        Ok(match name {
            "values" => Self::Values,
            "updates" => Self::Updates,
            "messages" => Self::Messages,
            "tools" => Self::Tools,
            "lifecycle" => Self::Lifecycle,
            "input" => Self::Input,
            "tasks" => Self::Tasks,
            "checkpoints" => Self::Checkpoints,
            "custom" => Self::Custom(None),
            _ => match name.strip_prefix("custom:") {
                Some(name) if !name.is_empty() => Self::Custom(Some(name.to_owned())),
                _ => return Err(Invalid::Value(format!("`{name}` is no channel"))),
            },
        })
    }
}

/// What a subscriber wants.
#[derive(Clone, Debug, Default)]
pub struct Subscription {
    channels: BTreeSet<Channel>,
    /// Graphs in which and below which it wants to see; all if empty.
    namespaces: Vec<Vec<String>>,
    /// How far below.
    depth: Option<usize>,
}

impl Subscription {
    /// Reads a subscription.
    ///
    /// # Errors
    ///
    /// [`Invalid::Value`] if a channel is none, or there is none.
    pub fn new(
        channels: &[String],
        namespaces: Vec<Vec<String>>,
        depth: Option<usize>,
    ) -> Result<Self, Invalid> {
        let channels: BTreeSet<Channel> =
            channels.iter().map(|name| Channel::of(name)).collect::<Result<_, _>>()?;
        if channels.is_empty() {
            return Err(Invalid::Value("a subscription needs `channels`".to_owned()));
        }
        Ok(Self { channels, namespaces, depth })
    }

    /// Whether a channel is wanted at all.
    pub(super) fn has(&self, channel: &Channel) -> bool {
        let all =
            matches!(channel, Channel::Custom(_)) && self.channels.contains(&Channel::Custom(None));
        all || self.channels.contains(channel)
    }

    /// Whether an event is wanted.
    pub(super) fn wants(&self, channel: &Channel, levels: &[String]) -> bool {
        self.has(channel) && self.sees(levels)
    }

    fn sees(&self, levels: &[String]) -> bool {
        let near = |above: usize| self.depth.is_none_or(|depth| levels.len() - above <= depth);
        if self.namespaces.is_empty() {
            return near(0);
        }
        self.namespaces.iter().any(|prefix| {
            let is_below = prefix.len() <= levels.len()
                && prefix.iter().zip(levels).all(|(wanted, level)| is_level(wanted, level));
            is_below && near(prefix.len())
        })
    }
}

/// A level may be named by its node alone.
fn is_level(wanted: &str, level: &str) -> bool {
    wanted == level || level.split(':').next() == Some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_subscriber_sees_what_is_below_its_namespaces() {
        for (namespaces, depth, level, sees) in [
            (vec![], None, levels(&["a:1", "b:2"]), true),
            (vec![], Some(1), levels(&["a:1", "b:2"]), false),
            (vec![levels(&[])], Some(0), levels(&[]), true),
            (vec![levels(&["a:1"])], None, levels(&["a:1", "b:2"]), true),
            (vec![levels(&["a"])], Some(0), levels(&["a:1"]), true),
            (vec![levels(&["a:1"])], Some(0), levels(&["a:1", "b:2"]), false),
            (vec![levels(&["a:1"])], None, levels(&["a:2"]), false),
            (vec![levels(&["a:1"])], None, levels(&[]), false),
        ] {
            let channels = levels(&["values"]);
            let subscription = Subscription::new(&channels, namespaces, depth).unwrap();
            assert_eq!(subscription.wants(&Channel::Values, &level), sees, "{level:?}");
            assert!(!subscription.wants(&Channel::Tools, &level));
        }
    }

    #[test]
    fn custom_events_are_wanted_by_name_or_all() {
        let read = |names: &[&str]| Subscription::new(&levels(names), Vec::new(), None);
        let progress = Channel::Custom(Some("progress".to_owned()));
        assert!(read(&["custom"]).unwrap().has(&progress));
        assert!(read(&["custom:progress"]).unwrap().has(&progress));
        assert!(!read(&["custom:other"]).unwrap().has(&progress));
        for wrong in [&[][..], &["nothing"], &["custom:"]] {
            assert!(matches!(read(wrong), Err(Invalid::Value(_))));
        }
    }
}
