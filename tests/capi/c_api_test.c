/* The C ABI from C11: a program trains, predicts, saves, loads, computes edit distances; every wrong call has a code
 * and a message. Prints the failures; exit code 1 when there is one. */
#define _POSIX_C_SOURCE 200809L

#include "gradloom/c_api.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures = 0;

#define EXPECT(condition)                                                                            \
  do {                                                                                               \
    if (!(condition)) {                                                                              \
      printf("%s:%d: %s (last error: %s)\n", __FILE__, __LINE__, #condition, gradloom_last_error()); \
      ++failures;                                                                                    \
    }                                                                                                \
  } while (0)

/* The call fails with this code, and its message has this text. */
#define EXPECT_FAILS(call, code, text)                                                                  \
  do {                                                                                                  \
    int status_ = (call);                                                                               \
    if (status_ != (code) || !strstr(gradloom_last_error(), (text))) {                                  \
      printf("%s:%d: %s returned %d: %s\n", __FILE__, __LINE__, #call, status_, gradloom_last_error()); \
      ++failures;                                                                                       \
    }                                                                                                   \
  } while (0)

enum { ROWS = 200 };

static double x_values[ROWS][2], y_values[ROWS];
static int64_t classes[ROWS];

static gradloom_array array_of(const void* data, int32_t dtype, int64_t size, int64_t rows, int64_t columns) {
  gradloom_array a;
  memset(&a, 0, sizeof a);
  a.data = data;
  a.dtype = dtype;
  a.dimensions = columns > 0 ? 2 : 1;
  a.shape[0] = rows;
  a.shape[1] = columns;
  a.strides[0] = columns > 0 ? size * columns : size;
  a.strides[1] = size;
  return a;
}

static gradloom_array doubles(const void* data, int64_t rows, int64_t columns) {
  return array_of(data, GRADLOOM_FLOAT64, 8, rows, columns);
}

static void make_data(void) {
  for (int i = 0; i < ROWS; ++i) {
    x_values[i][0] = -1.0 + 2.0 * (i % 20) / 19.0;
    x_values[i][1] = -1.0 + 2.0 * (i / 20) / 9.0;
    y_values[i] = x_values[i][0] * x_values[i][1] + x_values[i][0];
    classes[i] = y_values[i] > 0;
  }
}

static const char* kSettings =
    "{\"recipe\": {\"family\": \"kan\", \"epochs\": 20, \"data\": {\"test\": 0, \"validation\": 0}}, \"threads\": 1}";

static gradloom_handle fit_model(void) {
  gradloom_handle model = 0;
  gradloom_array x = doubles(x_values, ROWS, 2), y = doubles(y_values, ROWS, 0);
  EXPECT(gradloom_fit_rows(kSettings, &x, &y, NULL, NULL, &model) == GRADLOOM_OK);
  return model;
}

static int is_content_of(const char* path, const void* bytes, size_t size) {
  FILE* file = fopen(path, "rb");
  char* content = malloc(size + 1);
  const int same = file && content && fread(content, 1, size + 1, file) == size && memcmp(content, bytes, size) == 0;
  if (file) fclose(file);
  free(content);
  return same;
}

static void test_rows(const char* folder) {
  gradloom_handle model = fit_model(), again = 0, copy = 0, refined = 0;
  double before[ROWS] = {0}, after[ROWS] = {0};
  char path[512], *text = NULL;
  void* bytes = NULL;
  size_t size = 0;
  gradloom_array x = doubles(x_values, ROWS, 2), y = doubles(y_values, ROWS, 0);
  gradloom_array out = doubles(before, ROWS, 1), out2 = doubles(after, ROWS, 1);
  double squares = 0.0, mean = 0.0, total = 0.0, most = 0.0;

  EXPECT(gradloom_predict(model, &x, &out) == GRADLOOM_OK);
  for (int i = 0; i < ROWS; ++i) mean += y_values[i] / ROWS;
  for (int i = 0; i < ROWS; ++i) {
    squares += (before[i] - y_values[i]) * (before[i] - y_values[i]);
    total += (y_values[i] - mean) * (y_values[i] - mean);
  }
  EXPECT(squares < 0.5 * total); /* it has learned something */

  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  EXPECT(gradloom_save(model, path) == GRADLOOM_OK);
  EXPECT(gradloom_load(path, "{\"threads\": 1}", &again) == GRADLOOM_OK);
  EXPECT(gradloom_predict(again, &x, &out2) == GRADLOOM_OK);
  EXPECT(memcmp(before, after, sizeof before) == 0);
  EXPECT(setenv("TMPDIR", "/no/such/folder", 1) == 0); /* bytes need no file */
  EXPECT(gradloom_save_bytes(model, &bytes, &size) == GRADLOOM_OK);
  EXPECT(unsetenv("TMPDIR") == 0);
  EXPECT(is_content_of(path, bytes, size));
  EXPECT(gradloom_load_bytes(bytes, size, "{\"threads\": 1}", &copy) == GRADLOOM_OK);
  memset(after, 0, sizeof after);
  EXPECT(gradloom_predict(copy, &x, &out2) == GRADLOOM_OK);
  EXPECT(memcmp(before, after, sizeof before) == 0);
  gradloom_free(bytes);

  EXPECT(gradloom_refine(model, 10, &refined) == GRADLOOM_OK);
  EXPECT(gradloom_predict(refined, &x, &out2) == GRADLOOM_OK);
  for (int i = 0; i < ROWS; ++i) most = fmax(most, fabs(before[i] - after[i]));
  EXPECT(most < 1e-4); /* refining keeps the function */

  EXPECT(gradloom_describe(model, &text) == GRADLOOM_OK && strstr(text, "\"family\":\"kan\""));
  gradloom_free(text);
  EXPECT(gradloom_history(model, &text) == GRADLOOM_OK && strstr(text, "\"loss\""));
  gradloom_free(text);
  EXPECT(gradloom_metrics(model, &text) == GRADLOOM_OK && strstr(text, "\"rmse\""));
  gradloom_free(text);
  EXPECT(gradloom_measure(model, NULL, &x, &y, &text) == GRADLOOM_OK && strstr(text, "\"r2\""));
  gradloom_free(text);
  EXPECT(gradloom_draw(model, "svg", &text) == GRADLOOM_OK && strncmp(text, "<svg", 4) == 0);
  gradloom_free(text);
  EXPECT(gradloom_draw(again, "html", &text) == GRADLOOM_OK && strstr(text, "<!DOCTYPE html>"));
  gradloom_free(text);
  EXPECT_FAILS(gradloom_metrics(again, &text), GRADLOOM_UNSUPPORTED, "has no data");

  EXPECT(gradloom_close(model) == GRADLOOM_OK);
  EXPECT_FAILS(gradloom_predict(model, &x, &out), GRADLOOM_INVALID_INPUT, "not an open model");
  EXPECT_FAILS(gradloom_close(model), GRADLOOM_INVALID_INPUT, "not an open handle");
  gradloom_close(again);
  gradloom_close(copy);
  gradloom_close(refined);
}

/* Training goes on from a trained model, with another grid. */
static void test_from(void) {
  gradloom_handle model = fit_model(), more = 0;
  char settings[256], *text = NULL;
  gradloom_array x = doubles(x_values, ROWS, 2), y = doubles(y_values, ROWS, 0);
  snprintf(settings, sizeof settings,
           "{\"recipe\": {\"epochs\": 5, \"model\": {\"grid\": 8}, \"data\": {\"test\": 0, \"validation\": 0}}, "
           "\"threads\": 1, \"from\": %llu}",
           (unsigned long long)model);
  EXPECT(gradloom_fit_rows(settings, &x, &y, NULL, NULL, &more) == GRADLOOM_OK);
  EXPECT(gradloom_describe(more, &text) == GRADLOOM_OK && strstr(text, "\"grid\":8"));
  gradloom_free(text);
  gradloom_close(more);
  snprintf(settings, sizeof settings, "{\"recipe\": {\"model\": {\"hidden\": [7]}}, \"from\": %llu}",
           (unsigned long long)model);
  EXPECT_FAILS(gradloom_fit_rows(settings, &x, &y, NULL, NULL, &more), GRADLOOM_INVALID_INPUT, "trained network has");
  gradloom_close(model);
}

/* The size follows from the rows, and rows of the caller's choice watch training. */
static void test_settled_size(void) {
  gradloom_handle model = 0;
  char* text = NULL;
  gradloom_array x = doubles(x_values, ROWS, 2), y = doubles(y_values, ROWS, 0);
  EXPECT(gradloom_fit_rows("{\"base\": \"kan-tabular\", \"recipe\": {\"epochs\": 3, \"data\": {\"test\": 0}}, "
                           "\"threads\": 1}",
                           &x, &y, NULL, NULL, &model) == GRADLOOM_OK);
  EXPECT(gradloom_describe(model, &text) == GRADLOOM_OK && strstr(text, "\"folds\":5") &&
         strstr(text, "\"size\":\"given\""));
  gradloom_free(text);
  gradloom_close(model);
  EXPECT(gradloom_fit_rows("{\"base\": \"kan-tabular\", \"recipe\": {\"epochs\": 3, \"data\": {\"test\": 0}}, "
                           "\"threads\": 1, \"validation_from\": 150}",
                           &x, &y, NULL, NULL, &model) == GRADLOOM_OK);
  EXPECT(gradloom_describe(model, &text) == GRADLOOM_OK && strstr(text, "\"folds\":0"));
  gradloom_free(text);
  EXPECT(gradloom_metrics(model, &text) == GRADLOOM_OK && strstr(text, "\"validation\""));
  gradloom_free(text);
  gradloom_close(model);
  gradloom_array kinds = array_of(classes, GRADLOOM_INT64, 8, ROWS, 0);
  EXPECT(gradloom_fit_rows("{\"recipe\": {\"family\": \"gates\", \"model\": {\"size\": \"auto\"}, \"epochs\": 2}, "
                           "\"threads\": 1, \"validation_from\": 150}",
                           &x, &kinds, NULL, NULL, &model) == GRADLOOM_OK);
  EXPECT(gradloom_describe(model, &text) == GRADLOOM_OK && strstr(text, "\"gates\":[") &&
         strstr(text, "\"chosen\":") && strstr(text, "\"size\":\"given\""));
  gradloom_free(text);
  gradloom_close(model);
  EXPECT_FAILS(gradloom_fit_rows("{\"recipe\": {\"family\": \"gates\", \"model\": {\"size\": \"auto\"}}}", &x, &y, NULL, NULL, &model),
               GRADLOOM_INVALID_INPUT, "gates learn classes");
  EXPECT_FAILS(gradloom_fit_rows("{\"validation_from\": 200}", &x, &y, NULL, NULL, &model), GRADLOOM_INVALID_INPUT,
               "200 are training data and 0 validation data");
  EXPECT_FAILS(gradloom_fit_rows("{\"validation_from\": -1}", &x, &y, NULL, NULL, &model), GRADLOOM_INVALID_INPUT,
               "validation_from");
  EXPECT_FAILS(gradloom_fit_rows("{\"validation_from\": 9, \"recipe\": {\"data\": {\"validation\": 0.1}}}", &x, &y,
                                 NULL, NULL, &model),
               GRADLOOM_INVALID_INPUT, "data.validation is 0.1");
  EXPECT_FAILS(gradloom_fit_graphs("{\"validation_from\": 9}", 1, NULL, &model), GRADLOOM_INVALID_INPUT,
               "validation_from");
}

static void test_classes_and_tables(void) {
  gradloom_handle model = 0;
  gradloom_array x = doubles(x_values, ROWS, 2), y = array_of(classes, GRADLOOM_INT64, 8, ROWS, 0);
  double probabilities[ROWS][2] = {{0}}, two[2][2] = {{0}};
  gradloom_array out = doubles(probabilities, ROWS, 2), out2 = doubles(two, 2, 2);
  char* text = NULL;
  EXPECT(gradloom_fit_rows("{\"recipe\": {\"epochs\": 10}, \"classes\": [\"no\", \"yes\"], \"threads\": 1}", &x, &y,
                           NULL, NULL, &model) == GRADLOOM_OK);
  EXPECT(gradloom_describe(model, &text) == GRADLOOM_OK && strstr(text, "\"classes\":[\"no\",\"yes\"]"));
  gradloom_free(text);
  EXPECT(gradloom_predict(model, &x, &out) == GRADLOOM_OK);
  for (int i = 0; i < ROWS; ++i) EXPECT(fabs(probabilities[i][0] + probabilities[i][1] - 1.0) < 1e-6);
  gradloom_close(model);

  char table[4096] = "colour,size,kind\n";
  for (int i = 0; i < 60; ++i) {
    char line[64];
    snprintf(line, sizeof line, "%s,%d,%s\n", i % 3 ? "red" : "blue", i % 7, i % 3 ? "apple" : "plum");
    strcat(table, line);
  }
  EXPECT(gradloom_fit_table("{\"recipe\": {\"task\": \"classification\", \"epochs\": 200, \"data\": {\"target\": "
                            "[\"kind\"]}}, \"threads\": 1}",
                            table, strlen(table), NULL, &model) == GRADLOOM_OK);
  const char* asked = "size,colour\n3,blue\n1,red\n";
  EXPECT(gradloom_predict_table(model, asked, strlen(asked), &out2) == GRADLOOM_OK);
  EXPECT(two[0][1] > two[0][0] && two[1][0] > two[1][1]); /* classes are sorted: apple, plum */
  const char* unknown = "size,colour\n3,green\n";
  EXPECT_FAILS(gradloom_predict_table(model, unknown, strlen(unknown), &out2), GRADLOOM_INVALID_INPUT, "green");
  gradloom_close(model);
}

static gradloom_handle cycles(void) {
  gradloom_handle graphs = 0;
  EXPECT(gradloom_graphs_new("{\"node_labels\": [\"C\", \"O\"]}", &graphs) == GRADLOOM_OK);
  for (int64_t n = 4; n <= 6; ++n) {
    int64_t row_ptr[8], column[8], label[8];
    for (int64_t v = 0; v < n; ++v) {
      row_ptr[v] = v;
      column[v] = (v + 1) % n;
      label[v] = v == 0;
    }
    row_ptr[n] = n;
    gradloom_graph g;
    memset(&g, 0, sizeof g);
    g.nodes = n;
    g.row_ptr = array_of(row_ptr, GRADLOOM_INT64, 8, n + 1, 0);
    g.column = array_of(column, GRADLOOM_INT64, 8, n, 0);
    g.node_labels = array_of(label, GRADLOOM_INT64, 8, n, 0);
    g.graph_class = -1;
    g.graph_target = NAN;
    EXPECT(gradloom_graphs_add(graphs, &g) == GRADLOOM_OK);
    if (n == 4) {
      column[0] = 9;
      EXPECT_FAILS(gradloom_graphs_add(graphs, &g), GRADLOOM_INVALID_INPUT, "node 9");
    }
  }
  return graphs;
}

static void test_distances(void) {
  gradloom_handle graphs = cycles();
  char* text = NULL;
  double lower[3][3] = {{0}}, upper[3][3] = {{0}};
  gradloom_hooks hooks;
  gradloom_array low = doubles(lower, 3, 3), high = doubles(upper, 3, 3), wrong = doubles(lower, 2, 3);
  /* A cycle becomes the next one by an edge less, a node and two edges more. */
  EXPECT(gradloom_ged_pair(graphs, 0, 1, NULL, NULL, &text) == GRADLOOM_OK && strstr(text, "\"upper\":4.0") &&
         strstr(text, "\"exact\":true"));
  gradloom_free(text);
  EXPECT(gradloom_ged_pair(graphs, 0, 1, "{\"path\": false}", NULL, &text) == GRADLOOM_OK && strstr(text, "\"upper\":4.0") &&
         !strstr(text, "\"path\""));
  gradloom_free(text);
  /* Within 3 it is not; by which bound that was found is no matter. */
  EXPECT(gradloom_ged_pair(graphs, 0, 1, "{\"threshold\": 3}", NULL, &text) == GRADLOOM_OK &&
         strstr(text, "\"within\":false"));
  gradloom_free(text);
  EXPECT(gradloom_ged_pair(graphs, 0, 1, "{\"threshold\": 4}", NULL, &text) == GRADLOOM_OK &&
         strstr(text, "\"within\":true"));
  gradloom_free(text);
  EXPECT(gradloom_ged_matrix(graphs, "{\"threads\": 1}", NULL, &low, &high) == GRADLOOM_OK);
  EXPECT(upper[0][1] == 4.0 && upper[1][0] == 4.0 && lower[0][1] == 4.0 && upper[2][2] == 0.0);
  EXPECT(gradloom_ged_search(graphs, 0, "{\"threshold\": 4}", NULL, &text) == GRADLOOM_OK);
  EXPECT(strstr(text, "\"graph\":1") && !strstr(text, "\"graph\":2"));
  gradloom_free(text);
  memset(&hooks, 0, sizeof hooks);
  EXPECT(gradloom_stop_new(&hooks.stop) == GRADLOOM_OK && gradloom_stop(hooks.stop) == GRADLOOM_OK);
  EXPECT(gradloom_ged_pair(graphs, 0, 1, NULL, &hooks, &text) == GRADLOOM_OK && strstr(text, "\"exact\":false"));
  gradloom_free(text);
  EXPECT(gradloom_ged_search(graphs, 0, "{\"threshold\": 3.5}", &hooks, &text) == GRADLOOM_OK &&
         !strstr(text, "\"within\":true"));
  gradloom_free(text);
  gradloom_close(hooks.stop);
  EXPECT_FAILS(gradloom_ged_matrix(graphs, NULL, NULL, &wrong, &high), GRADLOOM_INVALID_INPUT, "must be (3, 3)");
  EXPECT_FAILS(gradloom_ged_pair(graphs, 0, 3, NULL, NULL, &text), GRADLOOM_INVALID_INPUT, "3 graphs");
  EXPECT_FAILS(gradloom_ged_pair(graphs, 0, 1, "{\"costs\": {\"node_subs\": 1}}", NULL, &text), GRADLOOM_INVALID_INPUT,
               "node_subs");
  EXPECT_FAILS(gradloom_ged_pair(graphs, 0, 1, "{\"threshold\": -1}", NULL, &text), GRADLOOM_INVALID_INPUT, "threshold");
  EXPECT_FAILS(gradloom_ged_matrix(graphs, "{\"ties\": \"any\"}", NULL, &low, &high), GRADLOOM_INVALID_INPUT,
               "are for pairs");
  EXPECT_FAILS(gradloom_ged_search(graphs, 0, "{\"threshold\": 4, \"solver\": \"best-first\"}", NULL, &text),
               GRADLOOM_INVALID_INPUT, "are for pairs");
  gradloom_close(graphs);
}

static void test_circuits(void) {
  gradloom_handle life = 0;
  char *text = NULL, *report = NULL;
  unsigned char start[1][6][6], end[1][6][6];
  gradloom_array from, to;
  gradloom_hooks hooks;
  memset(start, 0, sizeof start);
  start[0][2][1] = start[0][2][2] = start[0][2][3] = 1; /* a blinker */
  memset(&from, 0, sizeof from);
  from.data = start;
  from.dtype = GRADLOOM_UINT8;
  from.dimensions = 3;
  from.shape[0] = 1, from.shape[1] = 6, from.shape[2] = 6;
  from.strides[0] = 36, from.strides[1] = 6, from.strides[2] = 1;
  to = from;
  to.data = end;
  EXPECT(gradloom_circuit_load("game-of-life", &life) == GRADLOOM_OK);
  EXPECT(gradloom_circuit_run(life, "{\"steps\": 1, \"threads\": 1}", NULL, &from, &to) == GRADLOOM_OK);
  EXPECT(end[0][1][2] == 1 && end[0][2][2] == 1 && end[0][3][2] == 1 && end[0][2][1] == 0);
  memset(&hooks, 0, sizeof hooks);
  EXPECT(gradloom_stop_new(&hooks.stop) == GRADLOOM_OK && gradloom_stop(hooks.stop) == GRADLOOM_OK);
  EXPECT(gradloom_circuit_run(life, "{\"steps\": 1}", &hooks, &from, &to) == GRADLOOM_OK);
  EXPECT(memcmp(start, end, sizeof start) == 0); /* no step was done */
  EXPECT(gradloom_circuit_export(life, "{\"format\": \"c\", \"verify\": true}", &hooks, &text, &report) == GRADLOOM_OK);
  EXPECT(strstr(report, "\"proved\":false") && strstr(text, "circuit"));
  gradloom_free(text);
  gradloom_free(report);
  gradloom_close(hooks.stop);
  EXPECT(gradloom_circuit_describe(life, &text) == GRADLOOM_OK && strstr(text, "B3/S23"));
  gradloom_free(text);
  EXPECT(gradloom_circuit_export(life, "{\"format\": \"c\", \"verify\": true}", NULL, &text, &report) == GRADLOOM_OK);
  EXPECT(strstr(report, "\"proved\":true") && strstr(text, "circuit"));
  gradloom_free(text);
  gradloom_free(report);
  from.shape[0] = 2;
  EXPECT_FAILS(gradloom_circuit_run(life, NULL, NULL, &from, &to), GRADLOOM_INVALID_INPUT, "end is");
  gradloom_close(life);
  EXPECT_FAILS(gradloom_circuit_parse("{}", &life), GRADLOOM_INVALID_INPUT, "");
}

static void test_wrong_calls(void) {
  gradloom_handle model = 0, flag = 0;
  gradloom_array x = doubles(x_values, ROWS, 2), y = doubles(y_values, ROWS, 0), bad = x;
  char* text = NULL;
  EXPECT_FAILS(gradloom_fit_rows(NULL, NULL, &y, NULL, NULL, &model), GRADLOOM_INVALID_INPUT, "x is NULL");
  EXPECT_FAILS(gradloom_fit_rows(NULL, &x, NULL, NULL, NULL, &model), GRADLOOM_INVALID_INPUT, "y is NULL");
  EXPECT_FAILS(gradloom_fit_rows(NULL, &x, &y, NULL, NULL, NULL), GRADLOOM_INVALID_INPUT, "model is NULL");
  EXPECT_FAILS(gradloom_fit_rows("{", &x, &y, NULL, NULL, &model), GRADLOOM_INVALID_INPUT, "settings:1: this is not JSON");
  EXPECT_FAILS(gradloom_fit_rows("[]", &x, &y, NULL, NULL, &model), GRADLOOM_INVALID_INPUT, "not a JSON object");
  EXPECT_FAILS(gradloom_fit_rows("{\"threads\": 1,\n\"threads\": 2}", &x, &y, NULL, NULL, &model),
               GRADLOOM_INVALID_INPUT, "'threads' appears twice");
  EXPECT_FAILS(gradloom_fit_rows("{\"treads\": 1}", &x, &y, NULL, NULL, &model), GRADLOOM_INVALID_INPUT, "'treads'");
  EXPECT_FAILS(gradloom_fit_rows("{\"arithmetic\": \"fast\"}", &x, &y, NULL, NULL, &model), GRADLOOM_INVALID_INPUT,
               "there is no arithmetic 'fast'; there are fused, split");
  EXPECT_FAILS(gradloom_fit_rows("{\"threads\": -1}", &x, &y, NULL, NULL, &model), GRADLOOM_INVALID_INPUT, "threads");
  EXPECT_FAILS(gradloom_fit_rows("{\"recipe\": {\"model\": {\"grid\": 0}}}", &x, &y, NULL, NULL, &model),
               GRADLOOM_INVALID_INPUT, "grid");
  EXPECT_FAILS(gradloom_fit_rows("{\"recipe\": {\"modle\": 1}}", &x, &y, NULL, NULL, &model), GRADLOOM_INVALID_INPUT,
               "modle");
  EXPECT_FAILS(gradloom_fit_rows("{\"recipe\": {\"family\": \"graph\"}}", &x, &y, NULL, NULL, &model),
               GRADLOOM_INVALID_INPUT, "family");
  bad.shape[0] = -1;
  EXPECT_FAILS(gradloom_fit_rows(NULL, &bad, &y, NULL, NULL, &model), GRADLOOM_INVALID_INPUT, "extent -1");
  bad = x;
  bad.dimensions = 9;
  EXPECT_FAILS(gradloom_fit_rows(NULL, &bad, &y, NULL, NULL, &model), GRADLOOM_INVALID_INPUT, "9 dimensions");
  bad = x;
  bad.dtype = 77;
  EXPECT_FAILS(gradloom_fit_rows(NULL, &bad, &y, NULL, NULL, &model), GRADLOOM_INVALID_INPUT, "unknown type 77");
  bad = x;
  bad.strides[0] = 3;
  EXPECT_FAILS(gradloom_fit_rows(NULL, &bad, &y, NULL, NULL, &model), GRADLOOM_INVALID_INPUT, "stride");
  bad = x;
  bad.data = NULL;
  EXPECT_FAILS(gradloom_fit_rows(NULL, &bad, &y, NULL, NULL, &model), GRADLOOM_INVALID_INPUT, "no data");
  bad = x;
  bad.shape[0] = ROWS - 1;
  EXPECT_FAILS(gradloom_fit_rows(NULL, &bad, &y, NULL, NULL, &model), GRADLOOM_INVALID_INPUT, "y has 200 rows");
  bad.shape[0] = 0;
  EXPECT_FAILS(gradloom_fit_rows(NULL, &bad, &y, NULL, NULL, &model), GRADLOOM_INVALID_INPUT, "0 rows");
  x_values[3][1] = INFINITY;
  EXPECT_FAILS(gradloom_fit_rows(NULL, &x, &y, NULL, NULL, &model), GRADLOOM_INVALID_INPUT, "row 3, column 1");
  make_data();
  EXPECT(model == 0);
  EXPECT_FAILS(gradloom_predict(123456, &x, &y), GRADLOOM_INVALID_INPUT, "not an open model");
  EXPECT(gradloom_stop_new(&flag) == GRADLOOM_OK);
  EXPECT_FAILS(gradloom_predict(flag, &x, &y), GRADLOOM_INVALID_INPUT, "is not a model");
  gradloom_close(flag);
  EXPECT_FAILS(gradloom_load("no/such/file", NULL, &model), GRADLOOM_NOT_FOUND, "no/such/file");
  EXPECT_FAILS(gradloom_load_bytes("nonsense", 8, NULL, &model), GRADLOOM_INVALID_INPUT, "");
  EXPECT_FAILS(gradloom_train("{\"recipe\": \"no-such\"}", NULL, &text), GRADLOOM_NOT_FOUND, "no-such");
  EXPECT_FAILS(gradloom_options("nothing", &text), GRADLOOM_INVALID_INPUT, "nothing");
  EXPECT(gradloom_options("kan", &text) == GRADLOOM_OK && strstr(text, "model.grid"));
  gradloom_free(text);
  EXPECT(gradloom_recipes(&text) == GRADLOOM_OK && strstr(text, "kan-hello"));
  gradloom_free(text);
}

/* Settings that are nested without end are refused before anything walks through them. */
static void test_deep_settings(void) {
  enum { DEPTH = 100000 };
  static const char begin[] = "{\"recipe\": ";
  char* deep = malloc(sizeof begin + 2 * DEPTH + 1);
  gradloom_handle model = 0;
  gradloom_array x = doubles(x_values, ROWS, 2), y = doubles(y_values, ROWS, 0);
  EXPECT(deep != NULL);
  strcpy(deep, begin);
  memset(deep + sizeof begin - 1, '[', DEPTH);
  memset(deep + sizeof begin - 1 + DEPTH, ']', DEPTH);
  strcpy(deep + sizeof begin - 1 + 2 * DEPTH, "}");
  EXPECT_FAILS(gradloom_fit_rows(deep, &x, &y, NULL, NULL, &model), GRADLOOM_INVALID_INPUT, "64 levels");
  free(deep);
}

static int stop_at_third(void* user, const char* json) {
  (void)json;
  return ++*(int*)user == 3;
}

static void test_stop(void) {
  int epochs = 0;
  gradloom_handle model = 0;
  gradloom_hooks hooks = {stop_at_third, NULL, &epochs, 0};
  gradloom_array x = doubles(x_values, ROWS, 2), y = doubles(y_values, ROWS, 0);
  char* text = NULL;
  EXPECT(gradloom_fit_rows(kSettings, &x, &y, NULL, &hooks, &model) == GRADLOOM_OK);
  EXPECT(epochs == 3);
  EXPECT(gradloom_describe(model, &text) == GRADLOOM_OK && strstr(text, "\"stopped\":true"));
  gradloom_free(text);
  gradloom_close(model);
}

struct Heard {
  pthread_t caller;
  int calls, strangers, stop;
};

static int hear(void* user, const char* json) {
  struct Heard* heard = user;
  (void)json;
  ++heard->calls;
  heard->strangers += !pthread_equal(pthread_self(), heard->caller);
  return heard->stop;
}

/* Distances and formulas end when a callback or a flag says so, and callbacks are called on the thread of the call. */
static void test_stop_of_searches(void) {
  gradloom_handle graphs = cycles(), flag = 0, model = fit_model();
  double lower[3][3] = {{0}}, upper[3][3] = {{0}};
  gradloom_array low = doubles(lower, 3, 3), high = doubles(upper, 3, 3);
  gradloom_array x = doubles(x_values, ROWS, 2), y = doubles(y_values, ROWS, 0);
  struct Heard heard = {pthread_self(), 0, 0, 0};
  gradloom_hooks hooks = {hear, NULL, &heard, 0}, stopped = {NULL, NULL, NULL, 0};
  char* text = NULL;
  EXPECT(gradloom_ged_matrix(graphs, "{\"threads\": 2}", &hooks, &low, &high) == GRADLOOM_OK);
  EXPECT(heard.calls > 0 && heard.strangers == 0 && lower[0][1] == 4.0 && upper[0][1] == 4.0);

  EXPECT(gradloom_stop_new(&flag) == GRADLOOM_OK && gradloom_stop(flag) == GRADLOOM_OK);
  stopped.stop = flag;
  EXPECT(gradloom_ged_matrix(graphs, NULL, &stopped, &low, &high) == GRADLOOM_OK);
  EXPECT(lower[0][1] < upper[0][1] && lower[0][1] <= 4.0 && upper[0][1] >= 4.0 && upper[1][1] == 0.0);
  EXPECT(gradloom_formula(model, NULL, &x, &y, &stopped, &text) == GRADLOOM_OK && strstr(text, "was stopped"));
  gradloom_free(text);

  heard.calls = 0;
  EXPECT(gradloom_formula(model, "{\"effort\": 2000}", &x, &y, &hooks, &text) == GRADLOOM_OK &&
         strstr(text, "\"status\":\"exact\""));
  gradloom_free(text);
  EXPECT(heard.calls > 0 && heard.strangers == 0);
  heard.stop = 1;
  EXPECT(gradloom_formula(model, NULL, &x, &y, &hooks, &text) == GRADLOOM_OK && strstr(text, "\"status\""));
  gradloom_free(text);
  gradloom_close(model);
  gradloom_close(flag);
  gradloom_close(graphs);
}

static gradloom_handle shared_model;
static double shared_y[ROWS];

static void* use_shared_model(void* result) {
  double own[ROWS] = {0};
  gradloom_array x = doubles(x_values, ROWS, 2), out = doubles(own, ROWS, 1);
  int wrong = 0;
  for (int i = 0; i < 20; ++i) {
    memset(own, 0, sizeof own);
    wrong += gradloom_predict(shared_model, &x, &out) != GRADLOOM_OK || memcmp(own, shared_y, sizeof own) != 0;
    wrong +=
        gradloom_predict(987654321, &x, &out) != GRADLOOM_INVALID_INPUT || !strstr(gradloom_last_error(), "987654321");
  }
  gradloom_handle model = fit_model();
  memset(own, 0, sizeof own);
  wrong += gradloom_predict(model, &x, &out) != GRADLOOM_OK || memcmp(own, shared_y, sizeof own) != 0;
  gradloom_close(model);
  *(int*)result = wrong;
  return NULL;
}

static void test_eight_threads(void) {
  pthread_t threads[8];
  int wrong[8];
  gradloom_array x = doubles(x_values, ROWS, 2), out = doubles(shared_y, ROWS, 1);
  shared_model = fit_model();
  EXPECT(gradloom_predict(shared_model, &x, &out) == GRADLOOM_OK);
  for (int i = 0; i < 8; ++i) EXPECT(pthread_create(&threads[i], NULL, use_shared_model, &wrong[i]) == 0);
  for (int i = 0; i < 8; ++i) {
    pthread_join(threads[i], NULL);
    EXPECT(wrong[i] == 0);
  }
  gradloom_close(shared_model);
}

/* A child of a fork uses models of one thread, and is told about the others. */
static void test_fork(void) {
  gradloom_handle one = fit_model(), several = 0;
  double own[ROWS] = {0};
  gradloom_array x = doubles(x_values, ROWS, 2), y = doubles(y_values, ROWS, 0), out = doubles(own, ROWS, 1);
  int status = 1;
  EXPECT(gradloom_fit_rows("{\"recipe\": {\"epochs\": 2}, \"threads\": 2}", &x, &y, NULL, NULL, &several) ==
         GRADLOOM_OK);
  const pid_t child = fork();
  if (child == 0) {
    const int good = gradloom_predict(one, &x, &out) == GRADLOOM_OK &&
                     gradloom_predict(several, &x, &out) == GRADLOOM_UNSUPPORTED &&
                     strstr(gradloom_last_error(), "fork") && gradloom_close(several) == GRADLOOM_OK;
    _exit(good ? 0 : 1);
  }
  EXPECT(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  gradloom_close(one);
  gradloom_close(several);
}

int main(void) {
  char folder[] = "gradloom-c-api-XXXXXX";
  char path[512];
  make_data();
  EXPECT(mkdtemp(folder) != NULL);
  EXPECT(gradloom_abi_version() == GRADLOOM_ABI_VERSION && strlen(gradloom_version()) > 0);
  test_rows(folder);
  test_from();
  test_settled_size();
  test_classes_and_tables();
  test_distances();
  test_circuits();
  test_wrong_calls();
  test_deep_settings();
  test_stop();
  test_stop_of_searches();
  test_eight_threads();
  test_fork();
  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  unlink(path);
  rmdir(folder);
  printf("%d failures\n", failures);
  return failures > 0;
}
