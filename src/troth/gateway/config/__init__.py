"""What the operator wrote: ``troth.toml``, or a host's list of servers, as `troth.gateway.settings`."""

from troth.gateway.config.find import config_folder, config_folders, find_config, state_folder
from troth.gateway.config.read import Faults, load

__all__ = ["Faults", "config_folder", "config_folders", "find_config", "load", "state_folder"]
