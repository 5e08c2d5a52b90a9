//! What a subscriber wants of a thread.

use std::collections::BTreeSet;

/// Why a subscription is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubscriptionError {
    /// A channel is none.
    #[error("`{0}` is no channel")]
    Channel(String),
    /// It names no channel.
    #[error("a subscription needs `channels`")]
    NoChannels,
}

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
    /// [`SubscriptionError::Channel`] if there is none.
    pub fn of(name: &str) -> Result<Self, SubscriptionError> {
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
                _ => return Err(SubscriptionError::Channel(name.to_owned())),
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
    /// A channel is none, or there is none.
    pub fn new(
        channels: &[String],
        namespaces: Vec<Vec<String>>,
        depth: Option<usize>,
    ) -> Result<Self, SubscriptionError> {
        let channels: BTreeSet<Channel> =
            channels.iter().map(|name| Channel::of(name)).collect::<Result<_, _>>()?;
        if channels.is_empty() {
            return Err(SubscriptionError::NoChannels);
        }
        Ok(Self { channels, namespaces, depth })
    }

    /// Whether more is wanted than how graphs begin, pause and end.
    pub fn has_content(&self) -> bool {
        self.channels.iter().any(|it| !matches!(it, Channel::Lifecycle | Channel::Input))
    }

    /// Whether everything is wanted that runs say, in all graphs.
    pub fn is_whole(&self) -> bool {
        let all = [
            Channel::Values,
            Channel::Updates,
            Channel::Messages,
            Channel::Tools,
            Channel::Tasks,
            Channel::Checkpoints,
            Channel::Custom(None),
        ];
        let has_all = all.iter().all(|channel| self.channels.contains(channel));
        has_all && self.namespaces.is_empty() && self.depth.is_none()
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
        assert_eq!(read(&[]).unwrap_err(), SubscriptionError::NoChannels);
        for wrong in ["nothing", "custom:"] {
            assert_eq!(read(&[wrong]).unwrap_err(), SubscriptionError::Channel(wrong.to_owned()));
        }
    }
}
