"""LiteLLM's proxy with `gateway.yaml`, on a free port: gateway.py

It ends with its standard input, so that it never outlives who started it.
"""

import os
import sys
import threading
from pathlib import Path

# Prices come with the package; newer ones are not fetched.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from litellm.proxy.proxy_cli import run_server  # noqa: E402


def end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=end_with_input, daemon=True).start()
config = Path(__file__).with_name("gateway.yaml")
run_server(["--config", str(config), "--host", "127.0.0.1", "--port", "0"])
