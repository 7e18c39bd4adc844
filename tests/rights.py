"""Work with the rights of nobody: for files that cannot be reached."""

import os


class as_nobody:  # noqa: N801 - reads as what it does
    """Take the rights of nobody, where this process has all."""

    def __enter__(self):
        self.user = os.geteuid()
        if self.user == 0:
            os.seteuid(65534)

    def __exit__(self, *_):
        os.seteuid(self.user)
