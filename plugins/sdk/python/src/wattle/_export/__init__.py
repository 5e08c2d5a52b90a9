"""The exports of a component. The entry that the build writes imports those that the plugin has."""
