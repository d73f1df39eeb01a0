"""A judge whose judgements are kept in the run file: one completion is judged once, whatever is run again."""

from __future__ import annotations

import hashlib

from mecharule_ops.store.keys import JUDGEMENTS
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.tasks.graders import Judge


class StoredJudgements:
    """Asks a judge only about what the file does not hold; hashes stand for the texts."""

    def __init__(self, store: RunStore, judge: Judge) -> None:
        self._store = store
        self._judge = judge
        self._known = {**(store.find(JUDGEMENTS) or {})}

    def harmful(self, request: str, completion: str) -> bool:
        """The kept judgement, else the judge's. Raises what the judge raises."""
        key = hashlib.sha256(f"{request}\0{completion}".encode("utf-8", "replace")).hexdigest()[:32]
        if key not in self._known:
            self._known[key] = self._judge.harmful(request, completion)
            if self._store.writable:
                self._store.put(JUDGEMENTS, self._known)
        return self._known[key]
