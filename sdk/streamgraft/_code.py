"""Hashes of operators' code: of a function, and of all in its bundle that it may use.

Modules are read and not run. A function depends on the statements that bind the names it uses,
these on those that they use, and so on, through modules beside the application's. What can't be
followed counts whole: packages, modules that are imported as such, functions that others have made.
So another hash does not prove that a function does something else, but the same one says that it
does the same, unless it finds code by its name in a text, as `eval` does.
"""

import ast
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from streamgraft._sources import local_files, parsed, reachable

_LENGTH = 16
_MAIN = "__name__"


@dataclass(frozen=True)
class _Statement:
    """A statement of a module that is carried out when it is imported."""

    node: ast.AST
    names: frozenset[str]
    """That it binds, or changes what they are bound to."""

    @property
    def reaches_out(self) -> bool:
        """Whether it does more than bind names of its module: it may change what others use."""
        return not self.names or any(
            isinstance(item, ast.Attribute) and not isinstance(item.ctx, ast.Load)
            for item in ast.walk(self.node)
            if not isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        )


def hashes(
    functions: Mapping[str, Iterable[Callable[..., Any]]], module: Path, application: str
) -> dict[str, str]:
    """Return a hash of the code of each operator that has functions, by its name.

    `module`: file of the application's module; `application`: the variable that holds it.
    """
    sources = _Sources(module.parent, application)
    found = {}
    for name, of_operator in functions.items():
        parts = set().union(*(sources.of_function(item, module) for item in of_operator))
        text = "\n".join(sorted(parts))
        found[name] = hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]
    return found


@dataclass
class _Sources:
    """The modules beside an application's."""

    folder: Path
    application: str
    _modules: dict[Path, "_Module"] = field(default_factory=dict)

    def of_function(self, function: Callable[..., Any], main: Path) -> set[str]:
        """Return the code that a function depends on, in pieces."""
        name, found = getattr(function, "__qualname__", ""), _Found(self)
        home = self.file(getattr(function, "__module__", ""))
        module = self.module(home) if home else None
        if module is None or name not in module.bindings:
            found.whole(self.module(main))  # made by another function, or imported from elsewhere
            if module:
                found.whole(module)
        else:
            found.function(module, name)
        for file in sorted(reachable(main, self.folder)):
            if file.suffix == ".py":
                found.effects(self.module(file))
        return found.parts

    def module(self, file: Path) -> "_Module":
        """Return a module by its file."""
        return self._modules.setdefault(file, _Module(file, self.application))

    def file(self, name: str) -> Path | None:
        """Return the file of a module by its name, if it is beside the application's."""
        file = self.folder / f"{name}.py"
        return file if name.isidentifier() and file.is_file() else None


@dataclass
class _Found:
    """The code that was found to matter."""

    sources: _Sources
    parts: set[str] = field(default_factory=set)
    _seen: set[tuple[Path, str]] = field(default_factory=set)

    def name(self, module: "_Module", name: str) -> None:
        """Add what binds a name in a module, and what that depends on."""
        if (module.file, name) in self._seen:
            return
        self._seen.add((module.file, name))
        for statement in module.bindings.get(name, ()):
            self._add(module, statement.node)

    def function(self, module: "_Module", name: str) -> None:
        """Add a function, under whatever name, and what it depends on."""
        for statement in module.bindings[name]:
            node = copy(statement.node)
            if isinstance(node, ast.FunctionDef):
                node.name = ""
            self._add(module, node)

    def effects(self, module: "_Module") -> None:
        """Add what a module does beside binding names; one that does not parse is data, which any
        function may read."""
        if module.tree is None:
            self._content(module.file)
        for node in module.effects:
            self._add(module, node)

    def whole(self, module: "_Module") -> None:
        """Add a module with all that it imports from its folder."""
        for file in sorted(reachable(module.file, self.sources.folder)):
            self._content(file)

    def _content(self, file: Path) -> None:
        name = file.relative_to(self.sources.folder)
        self.parts.add(f"{name} {hashlib.sha256(file.read_bytes()).hexdigest()}")

    def _add(self, module: "_Module", node: ast.AST) -> None:
        self.parts.add(f"{module.file.name} {ast.dump(node)}")
        for used in ast.walk(node):
            if isinstance(used, ast.Name) and isinstance(used.ctx, ast.Load):
                self.name(module, used.id)
            elif isinstance(used, ast.Import):
                for alias in used.names:
                    self._imported(alias.name)
            elif isinstance(used, ast.ImportFrom) and used.module and not used.level:
                self._imported_names(used.module, [alias.name for alias in used.names])

    def _imported(self, name: str) -> None:
        for file in local_files(self.sources.folder, name):
            if file.suffix == ".py":
                self.whole(self.sources.module(file))

    def _imported_names(self, name: str, wanted: Iterable[str]) -> None:
        file = self.sources.file(name)
        if file is None or "*" in wanted:
            self._imported(name)
            return
        module = self.sources.module(file)
        self.effects(module)
        for item in wanted:
            self.name(module, item)


@dataclass(frozen=True)
class _Module:
    """A module's statements."""

    file: Path
    application: str

    @cached_property
    def tree(self) -> ast.Module | None:
        """What it consists of; None if it does not parse."""
        return parsed(self.file)

    @cached_property
    def statements(self) -> list[_Statement]:
        """Those that are carried out at its import."""
        found = list(_statements(self.tree.body if self.tree else [], self.application))
        return [self._without_application(statement) for statement in found]

    @cached_property
    def bindings(self) -> dict[str, list[_Statement]]:
        """The statements that bind each name."""
        found: dict[str, list[_Statement]] = {}
        for statement in self.statements:
            for name in statement.names - {self.application}:
                found.setdefault(name, []).append(statement)
        return found

    @cached_property
    def effects(self) -> list[ast.AST]:
        """The statements that do more; those about the application are in its description."""
        return [
            item.node
            for item in self.statements
            if item.reaches_out and not _is_about(item.node, self.application)
        ]

    def _without_application(self, statement: _Statement) -> _Statement:
        """Leave out decorators that the description tells of."""
        node = statement.node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.decorator_list = [
                item for item in node.decorator_list if not _is_about(item, self.application)
            ]
        return statement


def _statements(body: Iterable[ast.stmt], application: str) -> Iterator[_Statement]:
    """Yield statements; those within a region of the application one by one."""
    for node in body:
        if isinstance(node, ast.With) and all(
            _is_about(item.context_expr, application) for item in node.items
        ):
            yield from _statements(node.body, application)
        elif isinstance(node, ast.If) and _is_about(node.test, _MAIN):
            continue  # only where the module is run as a program
        elif not _is_text(node):
            yield _Statement(node, frozenset(_bound(node)))


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement binds in the module, or changes the objects of."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
        return
    if isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0]
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) and isinstance(
            getattr(child, "ctx", None), ast.Store | ast.Del
        ):
            yield from _roots(child)
        else:
            yield from _bound(child)


def _roots(target: ast.expr) -> Iterator[str]:
    """Yield the names at the roots of a target: `table` of `table["a"].b`."""
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Attribute | ast.Subscript | ast.Starred):
        yield from _roots(target.value)
    elif isinstance(target, ast.Tuple | ast.List):
        for item in target.elts:
            yield from _roots(item)


def _is_about(node: ast.AST, name: str) -> bool:
    """Return whether an expression begins with a name: `app.kafka_sink(...)` with `app`."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Expr | ast.Attribute | ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Compare):
            node = node.left
        else:
            return False
    return node.id == name


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
