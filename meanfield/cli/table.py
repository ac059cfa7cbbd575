"""Table of commands: function, summary, usage and arguments."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping

from meanfield.cli import catalogue, commands, file_commands, options, transformer

Handler = Callable[[Namespace], int]
Arguments = tuple[options.Argument, ...]
Command = tuple[Handler | None, str, str, Arguments | Mapping[str, "Command"]]  # or the table of its own commands
_SET = "[--set KEY=VALUE ...]"
_OWN = "[--component FILE.py]"
COMMANDS: dict[str, Command] = {
    "run": (
        commands.run,
        "solve a case and write an HDF5 file",
        f"CASE [-o FILE.h5] {_SET} [--overwrite] [--force] [--quiet] [--device cpu|gpu] {_OWN}",
        (*options.case_file, options.components, *options.run_options, options.quiet, options.device),
    ),
    "resume": (
        commands.resume,
        "continue from the last checkpoint of a run",
        f"FILE.h5 [--until TIME] {_SET} [--quiet] [--device cpu|gpu] {_OWN}",
        (options.run_file, options.overrides, options.components, options.until, options.quiet, options.device),
    ),
    "info": (
        file_commands.info,
        "describe the file of a run (in progress, killed or finished), a sweep, an experiment or a recorded solution",
        f"FILE.h5 [--json | --verify] {_OWN}",
        (options.described_file, options.components, options.as_json, options.verify),
    ),
    "plot": (
        file_commands.plot,
        "draw a run (snapshots, and diagnostics over time), a sweep, an experiment or a recorded solution",
        "FILE.h5 [-o FIGURE.png] [--panels NAME,...] [--size WxH] [--dpi N] [--cmap NAME] [--style paper|screen|dark] "
        f"[--times T,...] [--no-title] [--no-caption] {_OWN}",
        (options.drawn_file, options.components, *options.figure_output),
    ),
    "mergers": (
        file_commands.mergers,
        "report which clusters merged, when, and the lifetime of each cluster count",
        f"FILE.h5 [-o FIGURE.png] [--json] {_OWN}",
        (options.states_file, options.components, options.figure_if_named, options.as_json),
    ),
    "compare": (
        file_commands.compare,
        "compute distances (L1, Wasserstein) between two runs, or between the snapshots of one run",
        f"A.h5 [B.h5] [-o FIGURE.png] [--json] {_OWN}",
        (options.first_run, options.components, options.other_run, options.figure_if_named, options.as_json),
    ),
    "sweep": (
        commands.sweep,
        "run a case over values of its keys, on this machine or a Dask cluster",
        f"SWEEP [-o INDEX.h5] [--jobs N] [--dask ADDRESS] [--shard I/N] [--retry] [--overwrite] [--quiet] {_OWN}",
        (*options.sweep_options, options.components, options.quiet),
    ),
    "movie": (
        file_commands.movie,
        "animate a run, with a frame for each snapshot; at logarithmic times those without visible change are left out",
        f"FILE.h5 [-o FILE.gif|FILE.mp4] [--fps 12] [--overwrite] [--quiet] {_OWN}",
        (options.animated_file, options.components, *options.movie_options, options.quiet),
    ),
    "view": (
        file_commands.view,
        "write a page for the browser that shows a run, a sweep or a recorded solution",
        f"FILE.h5 [-o FILE.html] [--overwrite] {_OWN}",
        (options.stored_file, options.components, *options.page_output),
    ),
    "watch": (
        file_commands.watch,
        "serve the page of a run in progress to browsers of this machine",
        f"FILE.h5 {_OWN}",
        (options.watched_file, options.components),
    ),
    "export": (
        file_commands.export,
        "write densities for ParaView or on a regular grid, or diagnostics as a table",
        f"FILE.h5 --to {'|'.join(options.FORMATS)} [-o PATH] [--diagnostics NAME ...] [--overwrite] {_OWN}",
        (options.exported_file, options.components, *options.export_options),
    ),
    "check": (
        commands.check,
        "validate a case; print it with all defaults, and its cells, memory and steps",
        f"CASE {_SET} [--time] {_OWN}",
        (*options.case_file, options.timing, options.components),
    ),
    "cases": (
        catalogue.cases,
        "list the shipped cases by topic, with the time that each takes",
        "[--search WORD]",
        (options.search,),
    ),
    "new": (
        catalogue.new,
        "write a commented case for a manifold and a phenomenon",
        "MANIFOLD [--phenomenon NAME] [-o FILE.toml] [--overwrite]",
        options.new_case,
    ),
    "keys": (
        catalogue.keys,
        "list the keys of a case file: description, range, default and example",
        "[PREFIX]",
        (options.prefix,),
    ),
    "schema": (catalogue.schema, "print the JSON Schema of a case file, for editors", "", ()),
    "stability": (
        commands.stability,
        "compute the growth rate of each mode about the uniform density, and the critical noise",
        f"CASE [--tokens N] {_SET} {_OWN}",
        (*options.case_file, options.components, options.tokens),
    ),
    "branch": (
        commands.branch,
        "compute stable and unstable stationary densities over noise, beta or V, also beyond folds",
        f"CASE [--over stabilizers.noise] [--degree L] [--negative] [-o FIGURE.png] [--json] {_SET}",
        (*options.case_file, *options.branch_options, options.figure_if_named, options.as_json),
    ),
    "limit": (
        commands.limit,
        "compare the density with n simulated tokens, for several n: distances, their exponent, fluctuations, clusters",
        f"CASE [--n 100,300,1000] [--seeds K] [--jobs N] [--observables F,F] [--intervals N] [--order 1|2] "
        f"[--tolerance ANGLE] [-o FIGURE.png] [--json] [--quiet] {_SET} {_OWN}",
        (
            *options.case_file,
            options.components,
            *options.limit_options,
            options.figure_if_named,
            options.as_json,
            options.quiet,
        ),
    ),
    "escape": (
        commands.escape,
        "compute the barrier and the times of escape of n tokens from a metastable density with noise",
        f"CASE [--from uniform|ordered] [--n N,N] [--seeds K] [--jobs N] [--predict] [-o FIGURE.png] [--json] "
        f"[--quiet] {_SET} {_OWN}",
        (
            *options.case_file,
            options.components,
            *options.escape_options,
            options.figure_if_named,
            options.as_json,
            options.quiet,
        ),
    ),
    "convergence": (
        commands.convergence,
        "estimate the error of a run by runs on coarser meshes, and the observed order",
        f"CASE [--over domain.resolution] [--values N,N,N] [--of energy] [-o FIGURE.png] [--json] {_SET} {_OWN}",
        (
            *options.case_file,
            options.components,
            *options.convergence_options,
            options.figure_if_named,
            options.as_json,
        ),
    ),
    "selftest": (catalogue.selftest, "check this installation by small runs with exact answers", "", ()),
    "transformer": (
        None,
        "analyze a trained Transformer, or train a small one; compare with the mean-field equation",
        f"{'|'.join(transformer.COMMANDS)} ...",
        transformer.COMMANDS,
    ),
}
