"""The signals of regions: computed at every refresh, kept in memory."""
