"""The wheel is for one processor and for a C library of at least one version, and for any Python."""

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Tag(BuildHookInterface):
    """Names the wheel by the tag of pyproject.toml."""

    def initialize(self, version, build_data):
        build_data.update(tag=self.config["tag"], pure_python=False)
