/* gradloom for C, and for every language that can call C: train, predict, save, load, edit distances, circuits.
 *
 *   gradloom_handle model = 0;
 *   const char* settings = "{\"recipe\": {\"family\": \"kan\", \"epochs\": 50}}";
 *   if (gradloom_fit_rows(settings, &x, &y, NULL, NULL, &model) != GRADLOOM_OK) puts(gradloom_last_error());
 *   gradloom_predict(model, &x_new, &out);
 *   gradloom_close(model);
 *
 * Every function but those that return a text or a number returns a status. After any other status than GRADLOOM_OK
 * there is no result, and gradloom_last_error() of the same thread returns the message. Functions may be called from
 * any thread. Calls that use the same handle wait for each other. Options and results are JSON: options have the names
 * of recipe keys, and a key that is not given has the default that the command line has; but a batch that is not given
 * takes all training rows where the default is larger than their number (docs/c_api.md). */
#ifndef GRADLOOM_C_API_H
#define GRADLOOM_C_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GRADLOOM_ABI_VERSION 2

enum {
  GRADLOOM_OK = 0,
  GRADLOOM_INVALID_INPUT = 1, /* an argument, option or file is wrong */
  GRADLOOM_NOT_FOUND = 2,
  GRADLOOM_IO = 3,
  GRADLOOM_BUSY = 4,
  GRADLOOM_NUMERIC = 5, /* a loss or gradient is not finite: training diverged */
  GRADLOOM_UNSUPPORTED = 6,
  GRADLOOM_DEVICE = 7,        /* a device is missing, unsuitable or lost */
  GRADLOOM_OUT_OF_MEMORY = 8, /* of the host or of the device */
  GRADLOOM_INTERNAL = 9       /* an error in gradloom itself */
};

/* An open model, set of graphs, circuit or stop flag. 0 is no handle; the number of a closed handle is never used
 * again. */
typedef uint64_t gradloom_handle;

enum {
  GRADLOOM_FLOAT32 = 0,
  GRADLOOM_FLOAT64 = 1,
  GRADLOOM_UINT8 = 2, /* also bool */
  GRADLOOM_INT32 = 3,
  GRADLOOM_INT64 = 4
};

#define GRADLOOM_MOST_DIMENSIONS 4

/* An array of the caller, borrowed for the time of a call. Strides are in bytes, 0 or more, and multiples of the
 * element's size. `data` NULL: the array is absent, where that is allowed. Arrays that a function fills are
 * written through `data`. */
typedef struct gradloom_array {
  const void* data;
  int32_t dtype;
  int32_t dimensions;
  int64_t shape[GRADLOOM_MOST_DIMENSIONS];
  int64_t strides[GRADLOOM_MOST_DIMENSIONS];
} gradloom_array;

/* Callbacks of a call that takes long; each may be NULL. They are called on the thread of the call. */
typedef struct gradloom_hooks {
  /* After each epoch, some pairs of graphs, or some work of a search for a formula: JSON. Anything but 0 stops, as
   * gradloom_stop() does. */
  int (*progress)(void* user, const char* json);
  /* level: 0 information, 1 warning. */
  void (*log)(void* user, int level, const char* message);
  void* user;
  gradloom_handle stop; /* of gradloom_stop_new(), or 0 */
} gradloom_hooks;

const char* gradloom_version(void);
int gradloom_abi_version(void);
/* The message of the last call of this thread that failed; "" when none did. Valid until the next call. */
const char* gradloom_last_error(void);
/* Frees a text or bytes that a function returned; NULL is fine. */
void gradloom_free(void* memory);
/* Closes any handle. */
int gradloom_close(gradloom_handle handle);

/* All keys of the recipes of a family: a list of {key, type, doc, default, choices, keys}. `type` is a text with the
 * range or the choices; `choices` is there for keys that choose among names; `keys`, instead of `default`, for tables,
 * and lists theirs. */
int gradloom_options(const char* family, char** json);
/* The recipes that ship with the library: a list of {name, summary, family, toml}. */
int gradloom_recipes(char** json);

/* --- Training on data in memory ---------------------------------------------------------------------------------
 * settings: {"recipe": {...}, "base": "name of a shipped recipe", "threads": 0, "device": "cpu",
 * "arithmetic": "auto", "from": handle}, and what each function adds. "arithmetic": "fused" or "split" (docs/bits.md).
 * `recipe` takes precedence over `base`. Rows and tables: "validation_from", the first
 * (from 0) of the rows that are validation data, instead of the fraction data.validation; model.size = "auto" chooses
 * hidden layers, grid and weight decay, or gates and temperature, and batch and epochs ("settled" of the description
 * says how). Equal data, recipe and seed give equal bits, here and in `gradloom train`, on any number of threads. A
 * stop ends training; the model has the parameters of that step. */

/* x (rows, features) of float32 or float64; y (rows) or (rows, targets) of the same: regression; y (rows) of int64:
 * classes, numbers of "classes", a list of names, or the classes themselves. weights (rows) of float64, or NULL. Adds
 * "features", "targets": lists of names. */
int gradloom_fit_rows(const char* settings, const gradloom_array* x, const gradloom_array* y,
                      const gradloom_array* weights, const gradloom_hooks* hooks, gradloom_handle* model);
/* A table as text (CSV with a header): text columns become categories, an empty cell is a missing value, which is
 * treated as data.missing says; data.target names the targets. Words such as NA are text. */
int gradloom_fit_table(const char* settings, const char* csv, size_t bytes, const gradloom_hooks* hooks,
                       gradloom_handle* model);
/* A picture for a logic automaton: target (channels, height, width) of uint8, 0 or 1; NULL: the task of the recipe. */
int gradloom_fit_grid(const char* settings, const gradloom_array* target, const gradloom_hooks* hooks,
                      gradloom_handle* model);
int gradloom_fit_graphs(const char* settings, gradloom_handle graphs, const gradloom_hooks* hooks,
                        gradloom_handle* model);

int gradloom_stop_new(gradloom_handle* stop);
/* Makes every call that has this flag in its hooks return after its current step. Does not wait. */
int gradloom_stop(gradloom_handle stop);

/* --- Runs in folders, as the command line makes them ------------------------------------------------------------
 * settings: {"recipe": name or path of a .toml file, "overrides": ["key=value"], "folder": path, "threads": 0,
 * "device": "cpu", "arithmetic": "auto", "data_root": "."}. A run that is resumed has its own arithmetic. */
int gradloom_train(const char* settings, const gradloom_hooks* hooks, char** summary);
int gradloom_resume(const char* settings, const gradloom_hooks* hooks, char** summary);
/* settings: {"model": file or run folder, "data": file, "out": file or "", "threads": 0,
 * "arithmetic": "auto"}; of graphs also "nodes", the table of the nodes where data is that of the edges, "folder" of
 * the files that a collection lists, and "distances" of pairs. */
int gradloom_predict_file(const char* settings, char** summary);

/* --- Models ----------------------------------------------------------------------------------------------------
 * settings of load: {"threads": 0, "device": "cpu", "arithmetic": "auto"}, or NULL. "auto": that of the file. */
int gradloom_load(const char* path, const char* settings, gradloom_handle* model);
int gradloom_load_bytes(const void* bytes, size_t size, const char* settings, gradloom_handle* model);
int gradloom_save(gradloom_handle model, const char* path);
int gradloom_save_bytes(gradloom_handle model, void** bytes, size_t* size);
/* {family, precision, options, features, targets, classes, outputs, embedding, parameters, epochs, stage, finished,
 * stopped, settled, samples, device, warnings}. embedding: 0 where there is none; stage: from 0; stopped: a stop ended
 * training; settled: null where model.size was not "auto"; samples: 0 for a model that was loaded. */
int gradloom_describe(gradloom_handle model, char** json);
/* {columns: ["stage", "epoch", "run_epoch", "loss", ...], rows: [[...], ...]}: the figures of training after each
 * epoch. */
int gradloom_history(gradloom_handle model, char** json);
/* {train, validation, test}: metrics of these parts of the data that the model was fitted on. A figure that is not
 * finite is null, and `warnings` say why; the key is absent where all are finite. */
int gradloom_metrics(gradloom_handle model, char** json);
/* out (rows, outputs) of float32 or float64: targets, or probabilities of classes. */
int gradloom_predict(gradloom_handle model, const gradloom_array* x, const gradloom_array* out);
/* A row of out for each row. An empty cell is a missing value: the mean with data.missing = "mean", else an error. */
int gradloom_predict_table(gradloom_handle model, const char* csv, size_t bytes, const gradloom_array* out);
/* A row for each graph, or for each node when the model is for a node task. */
int gradloom_predict_graphs(gradloom_handle model, gradloom_handle graphs, const gradloom_array* out);
/* The embedding of each graph or node, which is what the head reads: out (rows, "embedding" of the description). */
int gradloom_embed_graphs(gradloom_handle model, gradloom_handle graphs, const gradloom_array* out);
/* Loss, and rmse, mae, r2 or accuracy, of rows whose targets are known, and `warnings` as gradloom_metrics() has them;
 * y as in gradloom_fit_rows(). */
int gradloom_measure(gradloom_handle model, const char* settings, const gradloom_array* x, const gradloom_array* y,
                     char** json);
/* A spline network with `grid` grid intervals and the same functions. */
int gradloom_refine(gradloom_handle model, int64_t grid, gradloom_handle* refined);
/* format "html": a page with the report of the model; of a spline network also "svg": a drawing, and "json": a
 * list of edges {layer, from, to, x, y, importance}. */
int gradloom_draw(gradloom_handle model, const char* format, char** text);

/* --- Formulas of spline networks (docs/formulas.md) --------------------------------------------------------------
 * x (rows, features) and y (rows) or (rows, targets) of float32 or float64: the data; NULL: rows in the range
 * of the training data, with the outputs of the network as targets. */

/* {inputs: [{name, score, error}], columns: the same for the columns of a table, nodes and node_errors: a list for each
 * hidden layer, edges: [{layer, from, to, score, error, kept}]}: shares of the output's variance. */
int gradloom_scores(gradloom_handle model, const gradloom_array* x, const gradloom_array* y, char** json);
/* What `gradloom formula --json` prints. settings: {"effort": 60000, "threshold": 1e-3, "functions": [names], "define":
 * [texts], "forbid": [texts], "fix": [texts]}. A stop ends the search; the formula is an approximation then. */
int gradloom_formula(gradloom_handle model, const char* settings, const gradloom_array* x, const gradloom_array* y,
                     const gradloom_hooks* hooks, char** json);
/* What `gradloom formula FORMULA.json --data FILE --json` prints: `formula`, which is what gradloom_formula gave, with
 * its numbers fitted to x (rows, its inputs) and y. */
int gradloom_formula_fit(const char* formula, const gradloom_array* x, const gradloom_array* y, char** json);
/* What `gradloom prune --json` prints. settings: {"out": file of the smaller model, and at most one of "threshold"
 * (0.01), "inputs", "worse"}. x is needed.
 * For a network that predicts classes y is theirs, here and in gradloom_scores(): integers (rows). */
int gradloom_prune(gradloom_handle model, const char* settings, const gradloom_array* x, const gradloom_array* y,
                   char** json);
/* What `gradloom export --json` prints. settings: {"format": "c", "onnx" or "efficient-kan", "out": file, "name":
 * "network"}. */
int gradloom_export(gradloom_handle model, const char* settings, char** json);

/* --- Graphs ----------------------------------------------------------------------------------------------------- */

/* One graph as compressed rows. An undirected edge is listed once, or in both directions with equal values. Arrays
 * whose `data` is NULL are absent; all graphs of a set have the same arrays. Labels and classes are numbers of the
 * names of the set; -1: an unknown class. */
typedef struct gradloom_graph {
  int64_t nodes;
  gradloom_array row_ptr;       /* (nodes + 1) of int64 */
  gradloom_array column;        /* (arcs) of int64 */
  gradloom_array node_labels;   /* (nodes) of int64 */
  gradloom_array node_classes;  /* (nodes) of int64 */
  gradloom_array node_parts;    /* (nodes) of int64: 0 none, 1 training, 2 validation, 3 test */
  gradloom_array node_features; /* (nodes, features) of float32 or float64 */
  gradloom_array edge_labels;   /* (arcs) of int64 */
  gradloom_array edge_weights;  /* (arcs) of float64 */
  int64_t graph_class;          /* -1: none */
  double graph_target;          /* NaN: none */
} gradloom_graph;

/* settings: {"directed": false, "node_labels": [names], "edge_labels": [], "node_classes": [], "graph_classes": []}. */
int gradloom_graphs_new(const char* settings, gradloom_handle* graphs);
/* Fails once the set has been used. */
int gradloom_graphs_add(gradloom_handle graphs, const gradloom_graph* graph);
int gradloom_graphs_load(const char* path, gradloom_handle* graphs);
int gradloom_graphs_count(gradloom_handle graphs, int64_t* count);

/* --- Graph edit distance ----------------------------------------------------------------------------------------
 * settings: {"costs": {...} (docs/ged.md), "seconds": per pair, "expansions": per pair, "threads": 0, "solver": "dfs",
 * "threshold": number, "ties": "smallest" or "any", "path": true}; all are optional. "solver", "ties" and "path" are
 * for gradloom_ged_pair(), "threshold" for it and gradloom_ged_search(). */

/* {lower, upper, exact, smallest, mapping, expanded, seconds, within, path: [{edit, from, to, cost}]}. mapping: the
 * image of each node of the first graph, null: deleted; within: null without a threshold, or where a limit came first;
 * path: missing with "path": false. After a stop there are bounds, as after a limit. */
int gradloom_ged_pair(gradloom_handle graphs, int64_t first, int64_t second, const char* settings,
                      const gradloom_hooks* hooks, char** json);
/* lower and upper (graphs, graphs) of float64. After a stop, pairs that were not compared have bounds without a search,
 * and the status is GRADLOOM_OK. */
int gradloom_ged_matrix(gradloom_handle graphs, const char* settings, const gradloom_hooks* hooks,
                        const gradloom_array* lower, const gradloom_array* upper);
/* A list of {graph, lower, upper, within}: the graphs within "threshold" of graph `query` of the set. After a stop, the
 * rest are judged by bounds without a search. */
int gradloom_ged_search(gradloom_handle graphs, int64_t query, const char* settings, const gradloom_hooks* hooks,
                        char** json);

/* --- Circuits --------------------------------------------------------------------------------------------------- */

/* A circuit.json, model file or run folder, or the name of a circuit that ships with the library. */
int gradloom_circuit_load(const char* path, gradloom_handle* circuit);
int gradloom_circuit_parse(const char* json, gradloom_handle* circuit);
int gradloom_circuit_of(gradloom_handle model, gradloom_handle* circuit);
/* The names of the circuits that ship with the library. */
int gradloom_circuits(char** json);
/* {inputs, outputs, gates, depth, channels, boundary, rule}; the last three only of a cell rule. */
int gradloom_circuit_describe(gradloom_handle circuit, char** json);
/* start and end (channels, height, width) of uint8. settings: {"steps": 1, "fire": 1.0, "seed": 0, "boundary": name,
 * "threads": 0}. After a stop, end has the cells of the last step that was done. */
int gradloom_circuit_run(gradloom_handle circuit, const char* settings, const gradloom_hooks* hooks,
                         const gradloom_array* start, const gradloom_array* end);
/* in (rows, inputs) and out (rows, outputs) of uint8. */
int gradloom_circuit_evaluate(gradloom_handle circuit, const gradloom_array* in, const gradloom_array* out);
/* settings: {"format": "c", "verilog", "json", "dot" or "svg", "verify": false, "name": "circuit", "minimiser": "own"}.
 * A stop ends the proof, which is missing then. */
int gradloom_circuit_export(gradloom_handle circuit, const char* settings, const gradloom_hooks* hooks, char** text,
                            char** report);

#ifdef __cplusplus
}
#endif

#endif
