"""What the operator wrote: ``troth.toml``, or a host's list of servers, as `troth.gateway.settings`."""

from troth.gateway.config.find import TOKENS, config_folder, config_folders, find_config, state_folder
from troth.gateway.config.read import Faults, load
from troth.gateway.config.tokens import keep_token, load_with_tokens, new_token, read_tokens

__all__ = [
    "TOKENS",
    "Faults",
    "config_folder",
    "config_folders",
    "find_config",
    "keep_token",
    "load",
    "load_with_tokens",
    "new_token",
    "read_tokens",
    "state_folder",
]
