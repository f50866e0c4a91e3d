import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("module", ["judge.pool.admission", "judge.pool.screen", "judge.jobs.validation"])
def test_the_processes_that_read_runs_or_screen_load_no_numpy(module: str) -> None:
    code = f"import sys, {module}; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
